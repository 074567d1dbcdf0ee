-- The columns of keys: with '' each primary key that is one integer, with + the integers of one of several columns,
-- with a column what refers to it by a foreign key, and with ? all integers of fewer than 64 bits.
WITH named AS (
	SELECT c.oid, CASE WHEN pg_table_is_visible(c.oid) THEN c.relname ELSE n.nspname || '.' || c.relname END AS name
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND n.nspname NOT LIKE 'pg\_%' AND n.nspname <> 'information_schema')
SELECT t.name, a.attname, CASE WHEN i.indnkeyatts = 1 THEN '' ELSE '+' END FROM pg_index i JOIN named t ON t.oid = i.indrelid
	JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY ((i.indkey::smallint[])[0:i.indnkeyatts - 1])
	WHERE i.indisprimary AND a.atttypid::regtype::text IN ('smallint', 'integer', 'bigint')
UNION ALL
SELECT t.name, a.attname, r.name || '.' || b.attname FROM pg_constraint k JOIN named t ON t.oid = k.conrelid JOIN named r ON r.oid = k.confrelid
	CROSS JOIN LATERAL unnest(k.conkey, k.confkey) AS pair (own, other)
	JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = pair.own JOIN pg_attribute b ON b.attrelid = k.confrelid AND b.attnum = pair.other
	WHERE k.contype = 'f' AND a.atttypid::regtype::text IN ('smallint', 'integer', 'bigint')
UNION ALL
SELECT t.name, a.attname, '?' FROM named t JOIN pg_attribute a ON a.attrelid = t.oid
	WHERE a.attnum > 0 AND NOT a.attisdropped AND a.atttypid::regtype::text IN ('smallint', 'integer')
ORDER BY 1, 2;
