-- The columns of keys, all of which have 64 bits on SQLite: with '' each primary key that is one integer, and with
-- a column what refers to it by a foreign key.
SELECT m.name, p.name, '' FROM sqlite_master m, pragma_table_info(m.name) p
	WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite\_%' ESCAPE '\' AND p.pk = 1 AND p.type LIKE '%INT%' AND (SELECT max(pk) FROM pragma_table_info(m.name)) = 1
UNION ALL
SELECT m.name, f."from", f."table" || COALESCE('.' || f."to", '') FROM sqlite_master m, pragma_foreign_key_list(m.name) f, pragma_table_info(m.name) p
	WHERE m.type = 'table' AND p.name = f."from" AND p.type LIKE '%INT%'
ORDER BY 1, 2;
