// Package serial writes serial numbers that people read. There are two kinds.
//
// A [Codec] writes a Snowflake: a prefix, the date and the time, and what else tells two
// keys apart. Nothing is stored.
//
//	PAY-20261122143015123007000042
//	    └─date─┘└─time──┘└w─┘└seq┘
//
// A [Series] counts, and begins again each year, month or day. A table keeps the counters,
// see package sqlserial. Numbers of [Counter] are fast and have gaps. Those that sqlserial
// takes in the caller's transaction have none.
//
//	INV2026000042
//
// # What is guaranteed
//
// A Codec gives each key of its layout one text, and reads it back. No two keys have one
// text. All texts of a codec have one width, and they sort as the keys do: by bytes, in
// any database with a binary collation. [Codec.Parse] refuses each text that [Codec.Format]
// would not write.
//
// No two calls get the same number of a series and period, in any number of processes. The
// period follows from the moment that the caller gives, and from the zone of the series. No
// two series of one [Series.Scope] write one text: the second that might is not defined.
//
// # Under which conditions
//
// The [Format] stays as it is: prefix, layout, zone, fold and check. Another one gives the
// same key another text. The definition of a series is stored, and another one refused.
//
// The date is that of UTC unless Format.Zone or Series.Zone says otherwise. In a zone with
// summer time one hour comes twice a year. The text of a key then needs one more digit, and
// Format.Fold allows that.
//
// The rules of a zone are those of the time-zone database of the machine. Governments
// change them. A later database can then give a later key another text, and refuse a text
// that an earlier one wrote. UTC and zones of [time.FixedZone] do not change.
package serial
