-- The tables of sqlx, as a migration would hold them. With exactly the words INTEGER
-- PRIMARY KEY the key is the address of the row. With any other type SQLite keeps a
-- second index, and the file grows by a third. On another database write BIGINT
-- PRIMARY KEY, without AUTO_INCREMENT.
--
-- A row inserted without an INTEGER PRIMARY KEY gets the largest key plus one from
-- SQLite. sqlxhelper never leaves a key out.

CREATE TABLE IF NOT EXISTS sqlx_imports (
	id          INTEGER PRIMARY KEY,
	source      TEXT NOT NULL,
	finished_at DATETIME,
	orders      INTEGER NOT NULL,
	lines       INTEGER NOT NULL,
	total       INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS sqlx_customers (
	id        INTEGER PRIMARY KEY,
	import_id INTEGER NOT NULL REFERENCES sqlx_imports (id),
	code      TEXT NOT NULL,
	company   TEXT NOT NULL,
	city      TEXT,
	country   TEXT,
	UNIQUE (import_id, code)
);
CREATE TABLE IF NOT EXISTS sqlx_products (
	id         INTEGER PRIMARY KEY,
	import_id  INTEGER NOT NULL REFERENCES sqlx_imports (id),
	number     INTEGER NOT NULL,
	name       TEXT NOT NULL,
	unit_price INTEGER NOT NULL,
	UNIQUE (import_id, number)
);
CREATE TABLE IF NOT EXISTS sqlx_orders (
	id           INTEGER PRIMARY KEY,
	import_id    INTEGER NOT NULL REFERENCES sqlx_imports (id),
	number       INTEGER NOT NULL,
	customer_id  INTEGER NOT NULL REFERENCES sqlx_customers (id),
	ordered_at   DATETIME NOT NULL,
	shipped_at   DATETIME,
	freight      INTEGER NOT NULL,
	ship_city    TEXT,
	ship_country TEXT,
	total        INTEGER NOT NULL,
	UNIQUE (import_id, number)
);
CREATE INDEX IF NOT EXISTS sqlx_orders_customer ON sqlx_orders (customer_id);
CREATE TABLE IF NOT EXISTS sqlx_order_items (
	id               INTEGER PRIMARY KEY,
	order_id         INTEGER NOT NULL REFERENCES sqlx_orders (id),
	product_id       INTEGER NOT NULL REFERENCES sqlx_products (id),
	unit_price       INTEGER NOT NULL,
	quantity         INTEGER NOT NULL,
	discount_percent INTEGER NOT NULL,
	total            INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS sqlx_order_items_order ON sqlx_order_items (order_id);
