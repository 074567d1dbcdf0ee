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
-- SQLite cannot change a primary key, so the tables are created again. Run PRAGMA foreign_keys
-- = OFF before, or dropping a table deletes the rows of other tables that refer to it with ON
-- DELETE CASCADE.
BEGIN;
CREATE TABLE orders_new (id INTEGER PRIMARY KEY, old_id TEXT, number TEXT, created_at DATETIME);
INSERT INTO orders_new (id, old_id, number, created_at) SELECT new_id, id, number, created_at FROM orders;
CREATE TABLE order_items_new (id INTEGER PRIMARY KEY, old_id TEXT, order_id BIGINT NOT NULL, old_order_id TEXT, sku TEXT, created_at DATETIME, CONSTRAINT fk_orders_items FOREIGN KEY (order_id) REFERENCES orders_new (id) ON DELETE CASCADE);
INSERT INTO order_items_new (id, old_id, order_id, old_order_id, sku, created_at) SELECT new_id, id, new_order_id, order_id, sku, created_at FROM order_items;
DROP TABLE order_items;
DROP TABLE orders;
ALTER TABLE orders_new RENAME TO orders;
ALTER TABLE order_items_new RENAME TO order_items;
COMMIT;

-- ### Drop what is left
-- Keep orders.old_id, with an index, for UUIDs in links and in databases of others.
ALTER TABLE order_items DROP COLUMN old_id;
ALTER TABLE order_items DROP COLUMN old_order_id;
