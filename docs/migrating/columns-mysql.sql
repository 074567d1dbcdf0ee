-- The columns of keys: with '' each primary key that is one integer, with + the integers of one of several columns,
-- with a column what refers to it by a foreign key, and with ? all integers of fewer than 64 bits.
SELECT s.table_name, s.column_name, CASE WHEN EXISTS (SELECT 1 FROM information_schema.statistics o
	WHERE o.table_schema = s.table_schema AND o.table_name = s.table_name AND o.index_name = 'PRIMARY' AND o.seq_in_index = 2) THEN '+' ELSE '' END FROM information_schema.statistics s
	JOIN information_schema.columns c ON c.table_schema = s.table_schema AND c.table_name = s.table_name AND c.column_name = s.column_name
	WHERE s.table_schema = DATABASE() AND s.index_name = 'PRIMARY' AND c.data_type LIKE '%int'
UNION ALL
SELECT k.table_name, k.column_name, CONCAT(k.referenced_table_name, '.', k.referenced_column_name) FROM information_schema.key_column_usage k
	JOIN information_schema.columns c ON c.table_schema = k.table_schema AND c.table_name = k.table_name AND c.column_name = k.column_name
	WHERE k.table_schema = DATABASE() AND k.referenced_table_name IS NOT NULL AND c.data_type LIKE '%int'
UNION ALL
SELECT c.table_name, c.column_name, '?' FROM information_schema.columns c JOIN information_schema.tables t ON t.table_schema = c.table_schema AND t.table_name = c.table_name
	WHERE c.table_schema = DATABASE() AND t.table_type = 'BASE TABLE' AND c.data_type LIKE '%int' AND c.data_type <> 'bigint'
ORDER BY 1, 2;
