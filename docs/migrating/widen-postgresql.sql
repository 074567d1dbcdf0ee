-- Widens the keys of orders and order_items to 64 bits while programs run: see ../migrating.md.
-- No step holds a lock for long.

-- ### Widen: copy
-- Each key gets a second column, which a trigger fills.
ALTER TABLE orders ADD COLUMN new_id BIGINT;
ALTER TABLE order_items ADD COLUMN new_id BIGINT, ADD COLUMN new_order_id BIGINT;
CREATE FUNCTION orders_copy() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.new_id := NEW.id; RETURN NEW; END';
CREATE FUNCTION order_items_copy() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.new_id := NEW.id; NEW.new_order_id := NEW.order_id; RETURN NEW; END';
CREATE TRIGGER orders_copy BEFORE INSERT OR UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION orders_copy();
CREATE TRIGGER order_items_copy BEFORE INSERT OR UPDATE ON order_items FOR EACH ROW EXECUTE FUNCTION order_items_copy();

-- ### Widen: old rows
-- Repeat each statement until it changes no row.
UPDATE orders SET new_id = id WHERE id IN (SELECT id FROM orders WHERE new_id IS NULL LIMIT 10000);
UPDATE order_items SET new_id = id WHERE id IN (SELECT id FROM order_items WHERE new_id IS NULL LIMIT 10000);

-- ### Widen: constraints
-- CONCURRENTLY and NOT VALID do the slow work without a lock that stops writers. Run these
-- outside a transaction. If your foreign key column has an index, create one for new_order_id.
CREATE UNIQUE INDEX CONCURRENTLY orders_new_pkey ON orders (new_id);
CREATE UNIQUE INDEX CONCURRENTLY order_items_new_pkey ON order_items (new_id);
ALTER TABLE orders ADD CONSTRAINT orders_filled CHECK (new_id IS NOT NULL) NOT VALID;
ALTER TABLE orders VALIDATE CONSTRAINT orders_filled;
ALTER TABLE order_items ADD CONSTRAINT order_items_filled CHECK (new_id IS NOT NULL AND new_order_id IS NOT NULL) NOT VALID;
ALTER TABLE order_items VALIDATE CONSTRAINT order_items_filled;
ALTER TABLE order_items ADD CONSTRAINT fk_orders_items_new FOREIGN KEY (new_order_id) REFERENCES orders (new_id) ON DELETE CASCADE NOT VALID;
ALTER TABLE order_items VALIDATE CONSTRAINT fk_orders_items_new;

-- ### Widen: back
-- To go back, until here.
BEGIN;
DROP TRIGGER orders_copy ON orders;
DROP TRIGGER order_items_copy ON order_items;
DROP FUNCTION orders_copy();
DROP FUNCTION order_items_copy();
ALTER TABLE order_items DROP COLUMN new_id, DROP COLUMN new_order_id;
ALTER TABLE orders DROP COLUMN new_id;
COMMIT;

-- ### Widen: exchange
-- This reads no rows, because the constraints are proven, and waits two seconds at most for
-- other transactions; if it gives up, run it again. If your foreign key had a comment or
-- disabled triggers, add COMMENT ON CONSTRAINT and ALTER TABLE … DISABLE TRIGGER.
BEGIN;
SET LOCAL lock_timeout = '2s';
LOCK TABLE orders, order_items IN ACCESS EXCLUSIVE MODE;
DROP TRIGGER orders_copy ON orders;
DROP TRIGGER order_items_copy ON order_items;
ALTER TABLE order_items DROP CONSTRAINT fk_orders_items, DROP CONSTRAINT order_items_pkey;
ALTER TABLE orders DROP CONSTRAINT orders_pkey;
ALTER TABLE orders ALTER COLUMN new_id SET DEFAULT nextval('orders_id_seq'), ALTER COLUMN new_id SET NOT NULL, DROP CONSTRAINT orders_filled;
ALTER TABLE order_items ALTER COLUMN new_id SET DEFAULT nextval('order_items_id_seq'), ALTER COLUMN new_id SET NOT NULL, ALTER COLUMN new_order_id SET NOT NULL, DROP CONSTRAINT order_items_filled;
ALTER SEQUENCE orders_id_seq OWNED BY orders.new_id;
ALTER SEQUENCE order_items_id_seq OWNED BY order_items.new_id;
ALTER TABLE orders DROP COLUMN id;
ALTER TABLE order_items DROP COLUMN id, DROP COLUMN order_id;
ALTER TABLE orders RENAME COLUMN new_id TO id;
ALTER TABLE order_items RENAME COLUMN new_id TO id;
ALTER TABLE order_items RENAME COLUMN new_order_id TO order_id;
ALTER TABLE orders ADD CONSTRAINT orders_pkey PRIMARY KEY USING INDEX orders_new_pkey;
ALTER TABLE order_items ADD CONSTRAINT order_items_pkey PRIMARY KEY USING INDEX order_items_new_pkey;
ALTER TABLE order_items RENAME CONSTRAINT fk_orders_items_new TO fk_orders_items;
DROP FUNCTION orders_copy();
DROP FUNCTION order_items_copy();
COMMIT;
