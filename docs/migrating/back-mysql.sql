-- Makes UUIDs of the keys of orders and order_items: see ../existing.md. keysql.Column.UUID
-- writes the expression for other columns, and types.FromUUID reads the key back.

-- ### To UUIDs
-- On MariaDB the columns may be of its type UUID.
ALTER TABLE order_items DROP FOREIGN KEY fk_orders_items;
ALTER TABLE orders ADD COLUMN new_id CHAR(36);
ALTER TABLE order_items ADD COLUMN new_id CHAR(36), ADD COLUMN new_order_id CHAR(36);
UPDATE orders SET new_id = LOWER(CONCAT(LPAD(HEX(`id` >> 32), 8, '0'), '-', LPAD(HEX((`id` >> 16) & 65535), 4, '0'), '-8', LPAD(HEX((`id` >> 4) & 4095), 3, '0'), '-9', HEX(`id` & 15), '73-6e6f776b6579'));
UPDATE order_items SET new_id = LOWER(CONCAT(LPAD(HEX(`id` >> 32), 8, '0'), '-', LPAD(HEX((`id` >> 16) & 65535), 4, '0'), '-8', LPAD(HEX((`id` >> 4) & 4095), 3, '0'), '-9', HEX(`id` & 15), '73-6e6f776b6579')), new_order_id = LOWER(CONCAT(LPAD(HEX(`order_id` >> 32), 8, '0'), '-', LPAD(HEX((`order_id` >> 16) & 65535), 4, '0'), '-8', LPAD(HEX((`order_id` >> 4) & 4095), 3, '0'), '-9', HEX(`order_id` & 15), '73-6e6f776b6579'));
ALTER TABLE orders DROP PRIMARY KEY, DROP COLUMN id, CHANGE new_id id CHAR(36) NOT NULL FIRST, ADD PRIMARY KEY (id);
ALTER TABLE order_items DROP PRIMARY KEY, DROP COLUMN id, DROP COLUMN order_id, CHANGE new_id id CHAR(36) NOT NULL FIRST, CHANGE new_order_id order_id CHAR(36) NOT NULL AFTER id, ADD PRIMARY KEY (id);
ALTER TABLE order_items ADD CONSTRAINT fk_orders_items FOREIGN KEY (order_id) REFERENCES orders (id) ON DELETE CASCADE;
