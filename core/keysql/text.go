package keysql

import "fmt"

// Text returns the decimal digits of the key as a text, for JSON that the database makes: a
// program that reads a number of JSON as a double changes the last digits of a key. types.Parse
// and the JSON of types.Snowflake read it. NULL gives NULL.
//
// It is for output. Compare and sort by the key itself, which has an index and the order of
// numbers: write its table too, as in ORDER BY orders.id, where the text is named id.
func (c Column) Text() string { return c.syntax.text(c.name) }

func (postgreSQL) text(key string) string { return key + "::text" }

func (mySQL) text(key string) string      { return fmt.Sprintf("CAST(%s AS CHAR)", key) }
func (sqlite) text(key string) string     { return fmt.Sprintf("CAST(%s AS TEXT)", key) }
func (duckDB) text(key string) string     { return fmt.Sprintf("CAST(%s AS VARCHAR)", key) }
func (clickHouse) text(key string) string { return fmt.Sprintf("toString(%s)", key) }
func (bigQuery) text(key string) string   { return fmt.Sprintf("CAST(%s AS STRING)", key) }
