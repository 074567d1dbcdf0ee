-- Widens the keys of orders and order_items to 64 bits while programs run: see ../migrating.md.

-- ### Widen: copy
-- Triggers keep the copies equal. Parents come first. Run the copying INSERTs in ranges of id
-- for large tables, because they lock the rows that they read. Keep LOCK IN SHARE MODE, without
-- which a row that is deleted meanwhile would come back under READ COMMITTED. MySQL runs no
-- trigger for rows that a foreign key deletes; the foreign key of the copy deletes them too.
CREATE TABLE orders_new (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, number VARCHAR(40));
CREATE TRIGGER orders_insert AFTER INSERT ON orders FOR EACH ROW INSERT INTO orders_new (id, number) VALUES (NEW.id, NEW.number) ON DUPLICATE KEY UPDATE number = NEW.number;
CREATE TRIGGER orders_update AFTER UPDATE ON orders FOR EACH ROW INSERT INTO orders_new (id, number) VALUES (NEW.id, NEW.number) ON DUPLICATE KEY UPDATE number = NEW.number;
CREATE TRIGGER orders_delete AFTER DELETE ON orders FOR EACH ROW DELETE FROM orders_new WHERE id = OLD.id;
INSERT INTO orders_new (id, number) SELECT o.id, o.number FROM orders o LOCK IN SHARE MODE ON DUPLICATE KEY UPDATE number = o.number;
CREATE TABLE order_items_new (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, order_id BIGINT NOT NULL, sku VARCHAR(40), CONSTRAINT fk_orders_items_new FOREIGN KEY (order_id) REFERENCES orders_new (id) ON DELETE CASCADE);
CREATE TRIGGER order_items_insert AFTER INSERT ON order_items FOR EACH ROW INSERT INTO order_items_new (id, order_id, sku) VALUES (NEW.id, NEW.order_id, NEW.sku) ON DUPLICATE KEY UPDATE order_id = NEW.order_id, sku = NEW.sku;
CREATE TRIGGER order_items_update AFTER UPDATE ON order_items FOR EACH ROW INSERT INTO order_items_new (id, order_id, sku) VALUES (NEW.id, NEW.order_id, NEW.sku) ON DUPLICATE KEY UPDATE order_id = NEW.order_id, sku = NEW.sku;
CREATE TRIGGER order_items_delete AFTER DELETE ON order_items FOR EACH ROW DELETE FROM order_items_new WHERE id = OLD.id;
INSERT INTO order_items_new (id, order_id, sku) SELECT i.id, i.order_id, i.sku FROM order_items i LOCK IN SHARE MODE ON DUPLICATE KEY UPDATE order_id = i.order_id, sku = i.sku;

-- ### Widen: back
-- To go back, until here.
DROP TRIGGER order_items_insert;
DROP TRIGGER order_items_update;
DROP TRIGGER order_items_delete;
DROP TRIGGER orders_insert;
DROP TRIGGER orders_update;
DROP TRIGGER orders_delete;
DROP TABLE order_items_new;
DROP TABLE orders_new;

-- ### Widen: exchange
-- Count the rows of both sides before. Keep the old tables until you are sure: they get no new
-- rows.
RENAME TABLE orders TO orders_old, orders_new TO orders, order_items TO order_items_old, order_items_new TO order_items;

-- ### Widen: old tables
-- The new foreign key gets the name that GORM looks for. It was in force all the time, so MySQL
-- need not check the rows.
DROP TABLE order_items_old;
DROP TABLE orders_old;
SET SESSION foreign_key_checks = 0;
ALTER TABLE order_items ADD CONSTRAINT fk_orders_items FOREIGN KEY (order_id) REFERENCES orders (id) ON DELETE CASCADE, ALGORITHM=INPLACE, LOCK=NONE;
ALTER TABLE order_items DROP FOREIGN KEY fk_orders_items_new;
SET SESSION foreign_key_checks = 1;
