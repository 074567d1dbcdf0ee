-- Makes UUIDs of the keys of orders and order_items: see ../existing.md. keysql.Column.UUID
-- writes the expression for other columns, and types.FromUUID reads the key back.

-- ### To UUIDs
-- The tables are created again: run PRAGMA foreign_keys = OFF before, or dropping a table deletes
-- the rows of other tables that refer to it with ON DELETE CASCADE.
BEGIN;
CREATE TABLE orders_new (id TEXT NOT NULL PRIMARY KEY, number TEXT);
INSERT INTO orders_new (id, number) SELECT CASE WHEN (`id` >> 32) IS NOT NULL THEN printf('%08x-%04x-8%03x-9%x73-6e6f776b6579', `id` >> 32, (`id` >> 16) & 65535, (`id` >> 4) & 4095, `id` & 15) END, number FROM orders;
CREATE TABLE order_items_new (id TEXT NOT NULL PRIMARY KEY, order_id TEXT NOT NULL, sku TEXT, CONSTRAINT fk_orders_items FOREIGN KEY (order_id) REFERENCES orders_new (id) ON DELETE CASCADE);
INSERT INTO order_items_new (id, order_id, sku) SELECT CASE WHEN (`id` >> 32) IS NOT NULL THEN printf('%08x-%04x-8%03x-9%x73-6e6f776b6579', `id` >> 32, (`id` >> 16) & 65535, (`id` >> 4) & 4095, `id` & 15) END, CASE WHEN (`order_id` >> 32) IS NOT NULL THEN printf('%08x-%04x-8%03x-9%x73-6e6f776b6579', `order_id` >> 32, (`order_id` >> 16) & 65535, (`order_id` >> 4) & 4095, `order_id` & 15) END, sku FROM order_items;
DROP TABLE order_items;
DROP TABLE orders;
ALTER TABLE orders_new RENAME TO orders;
ALTER TABLE order_items_new RENAME TO order_items;
COMMIT;
