CREATE TABLE orders (
  id bigint PRIMARY KEY,
  parent_id bigint REFERENCES orders (id),
  total bigint NOT NULL
);

CREATE TABLE items (
  id bigint PRIMARY KEY,
  order_id bigint NOT NULL REFERENCES orders (id),
  sku text NOT NULL
);

CREATE TABLE tickets (
  id bigint PRIMARY KEY,
  next_id bigint REFERENCES tickets (id)
);
