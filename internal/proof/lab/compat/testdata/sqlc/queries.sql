-- name: InsertOrder :exec
INSERT INTO orders (id, parent_id, total) VALUES (?, ?, ?);

-- name: InsertItem :one
INSERT INTO items (id, order_id, sku) VALUES (?, ?, ?) RETURNING *;

-- name: Orders :many
SELECT * FROM orders ORDER BY id;

-- name: ItemsOf :many
SELECT items.*, orders.total FROM items JOIN orders ON orders.id = items.order_id
WHERE orders.id IN (sqlc.slice('ids')) ORDER BY items.id;

-- name: InsertTicket :one
INSERT INTO tickets (id, next_id) VALUES (?, ?) RETURNING *;

-- name: Ticket :one
SELECT * FROM tickets WHERE id = ?;

-- name: OrdersAndItems :many
SELECT orders.id, items.id AS item_id FROM orders LEFT JOIN items ON items.order_id = orders.id;
