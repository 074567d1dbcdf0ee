// Package serial writes Snowflakes as serial numbers that people read: a prefix, the date
// and the time, and what else tells two keys apart.
//
//	PAY-20261122143015123007000042
//	    └─date─┘└─time──┘└w─┘└seq┘
//
// # What is guaranteed
//
// A [Codec] gives each key of its layout one text, and reads it back. No two keys have one
// text. All texts of a codec have one width, and they sort as the keys do: by bytes, in
// any database with a binary collation. [Codec.Parse] refuses each text that [Codec.Format]
// would not write.
//
// # Under which conditions
//
// The [Format] stays as it is: prefix, layout, zone, fold and check. Another one gives the
// same key another text.
//
// The date is that of UTC unless Format.Zone says otherwise. In a zone with summer time one
// hour comes twice a year. A text then needs one more digit, and Format.Fold allows that.
//
// The rules of a zone are those of the time-zone database of the machine. Governments
// change them. A later database can then give a later key another text, and refuse a text
// that an earlier one wrote. UTC and zones of [time.FixedZone] do not change.
package serial
