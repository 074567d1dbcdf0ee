package gormcases

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/snowkey/snowkey/types"
)

// A Wide has a column of every kind that may be unique.
type Wide struct {
	ID     types.Snowflake
	Text   *string
	Other  *string
	Code   *string
	Num    *int64
	Small  *int32
	Flag   *bool
	Price  *float64
	Cost   *string
	Ratio  *float32
	Wave   *float64
	Day    *time.Time
	Milli  *time.Time
	Stamp  *time.Time
	Bytes  []byte
	Kind   *string
	Closed int
}

// The columns of a Wide, in types that store less than they are given, or compare by
// rules of their own.
var wideColumns = map[string][]string{
	"sqlite": {
		"text varchar(8)", "other text COLLATE NOCASE", "code char(4)", "num bigint", "small integer", "flag numeric",
		"price decimal(6,2)", "cost decimal(6,2)", "ratio real", "wave double", "day date", "milli datetime", "stamp datetime", "bytes blob", "kind text",
	},
	"postgres": {
		"text varchar(8)", `other text COLLATE "C"`, "code char(4)", "num bigint", "small integer", "flag boolean",
		"price numeric(6,2)", "cost numeric(6,2)", "ratio real", "wave double precision", "day date", "milli timestamp(3)", "stamp timestamptz(0)", "bytes bytea", "kind wide_kind",
	},
	"mysql": {
		"text varchar(8)", "other varchar(8) CHARACTER SET latin1", "code char(4) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", "num bigint", "small int unsigned", "flag tinyint(1)",
		"price decimal(6,2)", "cost decimal(6,2) unsigned", "ratio float", "wave double", "day date", "milli datetime(3)", "stamp timestamp(0) NULL", "bytes varbinary(8)", "kind enum('a','b','ab')",
	},
}

// wide returns a Wide whose few values include some that are equal only to the database.
func wide(chance *rand.Rand) Wide {
	texts := []string{"a", "A", "a ", "ab", "aB", "b", "ä", "", "5", "05"}
	text := func() *string {
		if chance.IntN(6) == 0 {
			return nil
		}
		return &texts[chance.IntN(len(texts))]
	}
	at := func() *time.Time {
		if chance.IntN(6) == 0 {
			return nil
		}
		t := time.Date(2026, 1, 1+chance.IntN(2), 11, 59, 58+chance.IntN(2), 100_000_000*chance.IntN(10)+400*chance.IntN(3), time.UTC)
		return &t
	}
	number := float64(chance.IntN(8)) + float64(chance.IntN(4))*0.004
	num, small, flag, ratio := int64(1<<53)+int64(chance.IntN(6)), int32(chance.IntN(6)), chance.IntN(2) == 0, float32(number)
	cost, kind, half := fmt.Sprintf("%.3f", number), []string{"a", "b", "ab"}[chance.IntN(3)], number/3
	w := Wide{
		Text: text(), Other: text(), Num: &num, Small: &small, Flag: &flag, Price: &number, Cost: &cost, Ratio: &ratio, Wave: &half,
		Day: at(), Milli: at(), Stamp: at(), Kind: &kind, Closed: chance.IntN(2),
	}
	if chance.IntN(6) > 0 {
		w.Code = []*string{&texts[0], &texts[1], &texts[2], &texts[3], &texts[4]}[chance.IntN(5)]
	}
	if chance.IntN(6) > 0 {
		w.Bytes = []byte(texts[chance.IntN(len(texts))])
	}
	return w
}

// wideTable makes the table of Wide with random unique keys and returns them.
func (e *env) wideTable(chance *rand.Rand) (keys []string) {
	e.Helper()
	dialect := e.db.Name()
	table := e.prefix + "wides"
	columns := wideColumns[dialect]
	e.must(e.db.Exec("DROP TABLE IF EXISTS " + table))
	declared := strings.Join(columns, ", ")
	if dialect == "postgres" {
		declared = strings.ReplaceAll(declared, "wide_kind", e.prefix+"kind")
	}
	e.must(e.db.Exec("CREATE TABLE " + table + " (id bigint NOT NULL PRIMARY KEY, " + declared + ", closed int NOT NULL)"))
	for n := range 1 + chance.IntN(3) {
		var names []string
		for range 1 + chance.IntN(2) {
			name, _, _ := strings.Cut(columns[chance.IntN(len(columns))], " ")
			if dialect == "mysql" && name == "text" && chance.IntN(3) == 0 {
				name = "text(1)"
			}
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		key := "(" + strings.Join(names, ", ") + ")"
		if dialect != "mysql" && chance.IntN(3) == 0 {
			key += " WHERE closed = 0"
		}
		e.must(e.db.Exec(fmt.Sprintf("CREATE UNIQUE INDEX %sw%d ON %s %s", e.prefix, n, table, key)))
		keys = append(keys, key)
	}
	return keys
}

// create upserts rows in a transaction that is rolled back, all by one statement or each
// by its own. For each row it returns the key of the stored row, or the number of
// the row that was inserted, from -1 downwards.
func (e *env) create(db *gorm.DB, rows []Wide, asMaps bool, size int) (met []int64) {
	e.Helper()
	rows = slices.Clone(rows)
	tx := db.Begin()
	e.must(tx)
	defer tx.Rollback()
	var ids []int64
	for chunk := range slices.Chunk(rows, size) {
		upsert := tx.Clauses(clause.OnConflict{DoNothing: true})
		if asMaps {
			maps := make([]map[string]any, len(chunk))
			for i, w := range chunk {
				maps[i] = map[string]any{
					"text": w.Text, "other": w.Other, "code": w.Code, "num": w.Num, "small": w.Small, "flag": w.Flag, "price": w.Price, "cost": w.Cost, "ratio": w.Ratio,
					"wave": w.Wave, "day": w.Day, "milli": w.Milli, "stamp": w.Stamp, "bytes": w.Bytes, "kind": w.Kind, "closed": w.Closed,
				}
			}
			e.must(upsert.Model(&Wide{}).Create(&maps))
			for _, m := range maps {
				id, _ := m["id"].(types.Snowflake)
				ids = append(ids, id.Int64())
			}
			continue
		}
		e.must(upsert.Create(&chunk))
		for _, w := range chunk {
			ids = append(ids, w.ID.Int64())
		}
	}
	for _, id := range ids {
		if id > wideStored {
			id = -1 - int64(slices.Index(ids, id))
		}
		met = append(met, id)
	}
	return met
}

// wideStored is the highest key of the rows that are stored before. The source gives
// higher ones.
const wideStored = 1000

var oneLookCases = []testCase{
	{"RowsThatAreLookedUpTogetherAreThoseThatAreLookedUpOneByOne", func(e *env) {
		if e.db.Name() == "postgres" {
			e.must(e.db.Exec("CREATE TYPE " + e.prefix + "kind AS ENUM ('a', 'b', 'ab')"))
		}
		met, listed := 0, 0
		for seed := *randomSeed; seed < *randomSeed+6*e.runs(); seed++ {
			chance := rand.New(rand.NewPCG(seed, 1))
			keys := e.wideTable(chance)
			db := e.withPlugin(&gorm.Config{}) // it has learnt nothing of the table before
			// All that does not conflict is stored before. Else a row could become like two
			// by a later one of its statement.
			rows := make([]Wide, 100)
			for i := range rows {
				w := wide(chance)
				rows[i] = w
				w.ID = types.Snowflake(1 + i)
				e.must(db.Clauses(clause.OnConflict{DoNothing: true}).Create(&w))
			}
			chance.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
			for _, asMaps := range []bool{false, true} {
				e.log.reset()
				together := e.create(db, rows, asMaps, len(rows))
				for _, s := range e.log.statements("SELECT") {
					listed += lists(s)
				}
				for i, apart := range e.create(db, rows, asMaps, 1) {
					if apart > 0 {
						met++
					}
					if together[i] != apart {
						e.Fatalf("seed %d, unique %q, maps %v: row %d has the key %d; want %d, as by itself: %+v", seed, keys, asMaps, i, together[i], apart, rows[i])
					}
				}
			}
		}
		if met == 0 || listed == 0 {
			e.Errorf("rows that met others = %d, lists of values = %d; want some", met, listed)
		}
		e.Logf("%d rows met others, %d lists of values", met, listed)
	}},
}
