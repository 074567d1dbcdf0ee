-- Makes UUIDs of the keys of orders and order_items: see ../existing.md. keysql.Column.UUID
-- writes the expression for other columns, and types.FromUUID reads the key back.

-- ### To UUIDs
BEGIN;
ALTER TABLE order_items DROP CONSTRAINT fk_orders_items;
ALTER TABLE orders ALTER COLUMN id DROP DEFAULT, ALTER COLUMN id TYPE uuid USING (lpad(to_hex("id" >> 32), 8, '0') || lpad(to_hex(("id" >> 16) & 65535), 4, '0') || '8' || lpad(to_hex(("id" >> 4) & 4095), 3, '0') || '9' || to_hex("id" & 15) || '736e6f776b6579')::uuid;
ALTER TABLE order_items ALTER COLUMN id DROP DEFAULT, ALTER COLUMN id TYPE uuid USING (lpad(to_hex("id" >> 32), 8, '0') || lpad(to_hex(("id" >> 16) & 65535), 4, '0') || '8' || lpad(to_hex(("id" >> 4) & 4095), 3, '0') || '9' || to_hex("id" & 15) || '736e6f776b6579')::uuid, ALTER COLUMN order_id TYPE uuid USING (lpad(to_hex("order_id" >> 32), 8, '0') || lpad(to_hex(("order_id" >> 16) & 65535), 4, '0') || '8' || lpad(to_hex(("order_id" >> 4) & 4095), 3, '0') || '9' || to_hex("order_id" & 15) || '736e6f776b6579')::uuid;
ALTER TABLE order_items ADD CONSTRAINT fk_orders_items FOREIGN KEY (order_id) REFERENCES orders (id) ON DELETE CASCADE;
COMMIT;
