-- Exchanges the UUIDs of orders and order_items for new keys: see ../migrating.md.

-- ### Add columns
-- For tables that are large and in use, write CREATE UNIQUE INDEX CONCURRENTLY.
ALTER TABLE orders ADD COLUMN new_id BIGINT;
ALTER TABLE order_items ADD COLUMN new_id BIGINT;
ALTER TABLE order_items ADD COLUMN new_order_id BIGINT;
CREATE UNIQUE INDEX orders_new_id ON orders (new_id);
CREATE UNIQUE INDEX order_items_new_id ON order_items (new_id);

-- ### Fill the foreign keys
-- All of them, because an item may have been moved to another order since.
UPDATE order_items SET new_order_id = (SELECT o.new_id FROM orders o WHERE o.id = order_items.order_id);

-- ### Switch
BEGIN;
ALTER TABLE order_items DROP CONSTRAINT fk_orders_items;
ALTER TABLE order_items DROP CONSTRAINT order_items_pkey;
ALTER TABLE orders DROP CONSTRAINT orders_pkey;
ALTER TABLE orders RENAME COLUMN id TO old_id;
ALTER TABLE orders RENAME COLUMN new_id TO id;
ALTER TABLE orders ALTER COLUMN old_id DROP NOT NULL;
ALTER TABLE orders ADD PRIMARY KEY (id);
ALTER TABLE order_items RENAME COLUMN id TO old_id;
ALTER TABLE order_items RENAME COLUMN new_id TO id;
ALTER TABLE order_items RENAME COLUMN order_id TO old_order_id;
ALTER TABLE order_items RENAME COLUMN new_order_id TO order_id;
ALTER TABLE order_items ALTER COLUMN old_id DROP NOT NULL, ALTER COLUMN old_order_id DROP NOT NULL, ALTER COLUMN order_id SET NOT NULL;
ALTER TABLE order_items ADD PRIMARY KEY (id);
ALTER TABLE order_items ADD CONSTRAINT fk_orders_items FOREIGN KEY (order_id) REFERENCES orders (id) ON DELETE CASCADE;
COMMIT;

-- ### Drop what is left
-- Keep orders.old_id, with an index, for UUIDs in links and in databases of others.
ALTER TABLE order_items DROP COLUMN old_id;
ALTER TABLE order_items DROP COLUMN old_order_id;
