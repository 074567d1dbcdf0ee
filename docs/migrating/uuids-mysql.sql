-- Exchanges the UUIDs of orders and order_items for new keys: see ../migrating.md.

-- ### Add columns
ALTER TABLE orders ADD COLUMN new_id BIGINT;
ALTER TABLE order_items ADD COLUMN new_id BIGINT;
ALTER TABLE order_items ADD COLUMN new_order_id BIGINT;
CREATE UNIQUE INDEX orders_new_id ON orders (new_id);
CREATE UNIQUE INDEX order_items_new_id ON order_items (new_id);

-- ### Fill the foreign keys
-- All of them, because an item may have been moved to another order since.
UPDATE order_items SET new_order_id = (SELECT o.new_id FROM orders o WHERE o.id = order_items.order_id);

-- ### Switch
ALTER TABLE order_items DROP FOREIGN KEY fk_orders_items;
ALTER TABLE orders DROP PRIMARY KEY, CHANGE id old_id VARCHAR(36) NULL, CHANGE new_id id BIGINT NOT NULL, ADD PRIMARY KEY (id);
ALTER TABLE order_items DROP PRIMARY KEY, DROP INDEX fk_orders_items, CHANGE id old_id VARCHAR(36) NULL, CHANGE new_id id BIGINT NOT NULL, CHANGE order_id old_order_id VARCHAR(36) NULL, CHANGE new_order_id order_id BIGINT NOT NULL, ADD PRIMARY KEY (id);
ALTER TABLE order_items ADD CONSTRAINT fk_orders_items FOREIGN KEY (order_id) REFERENCES orders (id) ON DELETE CASCADE;

-- ### Drop what is left
-- Keep orders.old_id, with an index, for UUIDs in links and in databases of others.
ALTER TABLE order_items DROP COLUMN old_id;
ALTER TABLE order_items DROP COLUMN old_order_id;
