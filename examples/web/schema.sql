-- With exactly the words INTEGER PRIMARY KEY the key is the address of the row in SQLite. On
-- another database write BIGINT PRIMARY KEY, without AUTO_INCREMENT.
CREATE TABLE IF NOT EXISTS orders (
	id       INTEGER PRIMARY KEY,
	customer TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS order_lines (
	id       INTEGER PRIMARY KEY,
	order_id INTEGER NOT NULL REFERENCES orders (id),
	sku      TEXT NOT NULL,
	quantity INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS order_lines_order ON order_lines (order_id);
