// Package serial writes serial numbers that people read, from a [core.Layout] or a table, and without
// a generator. There are two kinds.
//
// A [Codec] writes a Snowflake as a prefix, the date, the time, and the remaining parts that
// distinguish two keys. Nothing is stored.
//
//	PAY-20261122143015123007000042
//	    └─date─┘└─time──┘└w─┘└seq┘
//
// A [Series] counts, and starts again each year, month or day. A table keeps the counters, see
// package sqlserial. The numbers of a [Counter] are fast and have gaps; those that sqlserial
// takes in the caller's transaction have none.
//
//	INV2026000042
//
// # Guarantees
//
// A Codec gives each key of its layout one text and reads it back. No two keys have the same
// text. All texts of a codec have the same width and sort as the keys do: by bytes, and in any
// database with a binary collation. [Codec.Parse] refuses every text that [Codec.Format] would
// not write.
//
// No two calls get the same number of a series and period, in any number of processes. The
// period follows from the time that the caller passes and the zone of the series. No two
// series of one [Series.Scope] can write the same text, because defining the second one fails.
//
// # Conditions
//
// The [CodecConfig] does not change, neither prefix nor layout, zone, fold or check: another one
// gives the same key another text. The definition of a series is stored, and a different one is
// refused.
//
// The date is UTC's unless CodecConfig.Zone or Series.Zone says otherwise. In a zone with summer
// time one hour occurs twice a year, and the text of a key then needs one more digit, which
// CodecConfig.Fold allows.
//
// The rules of a zone come from the machine's time-zone database and change when governments
// change them. A later database can give a later key another text, and refuse a text that an
// earlier one wrote. UTC and zones of [time.FixedZone] do not change.
//
// This package is experimental.
package serial
