package core

import "time"

// Default is the layout for new tables: 41 bits of milliseconds since 2025-01-01 UTC, no
// datacenter, 10 bits of worker, 12 bits of sequence.
//
//   - 41 bits of milliseconds last until 2094-09-07, because the epoch is recent.
//   - There is one flat space of 1,024 workers instead of 32 datacenters of 32, because
//     numbers are leased and not configured, and 33 pods in one datacenter are common. Set
//     DatacenterBits if you need regions.
//   - 12 bits of sequence are 4,096,000 IDs per second and worker, which is more than one
//     database can insert.
func Default() Layout {
	return Layout{
		Epoch:    time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC),
		Unit:     time.Millisecond,
		TimeBits: 41, WorkerBits: 10, SequenceBits: 12,
	}
}

// Twitter is the layout of Twitter's snowflake (github.com/twitter-archive/snowflake,
// 2010): 41 bits of milliseconds since 1288834974657 ms Unix time, 5 bits of datacenter, 5
// of worker and 12 of sequence. It ends on 2080-07-10.
//
// bwmarrin/snowflake has the same epoch and widths but a single 10-bit node, which is
// datacenter<<5 | worker.
func Twitter() Layout {
	return Layout{
		Epoch:    time.UnixMilli(1288834974657).UTC(),
		Unit:     time.Millisecond,
		TimeBits: 41, DatacenterBits: 5, WorkerBits: 5, SequenceBits: 12,
	}
}

// Discord is the layout of Discord's IDs (discord.com/developers/docs/reference,
// "Snowflakes"): milliseconds since 2015-01-01 UTC, 5 bits of worker ID (our Datacenter), 5
// bits of process ID (our Worker) and 12 bits of increment. Discord's time has 42 bits and
// fills the sign bit from 2084-09-06; ours has 41 and ends on that day. Until then the IDs
// are the same.
func Discord() Layout {
	return Layout{
		Epoch:    time.UnixMilli(1420070400000).UTC(),
		Unit:     time.Millisecond,
		TimeBits: 41, DatacenterBits: 5, WorkerBits: 5, SequenceBits: 12,
	}
}

// Mastodon is the layout of Mastodon's IDs (lib/mastodon/snowflake.rb): Unix milliseconds,
// then 16 bits, which Mastodon fills from a hash and a database sequence and this package
// counts. There is no worker, so only one process at a time may generate such IDs.
// Mastodon's time has 48 bits; ours has 47 and ends in the year 6429.
func Mastodon() Layout {
	return Layout{
		Epoch:    time.UnixMilli(0).UTC(),
		Unit:     time.Millisecond,
		TimeBits: 47, SequenceBits: 16,
	}
}

// Instagram is the layout of Instagram's IDs ("Sharding & IDs at Instagram", 2012):
// milliseconds since 1314220021721 ms Unix time, 13 bits of shard (our Worker) and 10 bits
// of sequence. Instagram's time has 41 bits and fills the sign bit from 2046-06-27; ours
// has 40 and ends on that day.
func Instagram() Layout {
	return Layout{
		Epoch:    time.UnixMilli(1314220021721).UTC(),
		Unit:     time.Millisecond,
		TimeBits: 40, WorkerBits: 13, SequenceBits: 10,
	}
}

// JavaScript is the layout for IDs that must be JSON numbers. They have 53 bits, which a
// double holds exactly: Number.MAX_SAFE_INTEGER is 2^53-1.
//
//   - 38 bits of 10 ms since 2025-01-01 UTC: lasts until 2112-02-09.
//   - 6 bits of worker: 64 of them.
//   - 9 bits of sequence: 51,200 IDs per second and worker.
//
// Prefer Default and JSON strings, which types.Snowflake writes anyway, unless the receiver
// insists on numbers.
func JavaScript() Layout {
	return Layout{
		Epoch:    time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC),
		Unit:     10 * time.Millisecond,
		TimeBits: 38, WorkerBits: 6, SequenceBits: 9,
	}
}
