package main

// A suite is what one run measures, and what the pages show of it. Its results are in
// results, in a file of its name.
type suite struct {
	name, title string
	rounds      int // of a run, unless the command says otherwise
	steps       []step
	sections    func(*results) map[string]string
	goals       func() []goal
}

// A step is one run of a test binary. Benchmarks that are compared with each other belong
// to one step, so that they follow each other within a round.
type step struct {
	pattern string // of -test.bench, or of -test.run if it begins with ^Test
	time    string // of -test.benchtime
	folder  string // of the package, seen from here; "": this one
	once    bool   // in the first round alone
}

var suites = []suite{
	{"generator", "generator", 5, []step{
		{pattern: "^BenchmarkNext$", time: "100ms"},
		{pattern: "^BenchmarkContention$/^c=1$", time: "50ms"},
		{pattern: "^BenchmarkContention$/^c=2$", time: "50ms"},
		{pattern: "^BenchmarkContention$/^c=4$", time: "50ms"},
		{pattern: "^BenchmarkContention$/^c=8$", time: "50ms"},
		{pattern: "^BenchmarkContention$/^c=12$", time: "50ms"},
		{pattern: "^BenchmarkContention$/^c=64$", time: "50ms"},
		// 2 s where the goal is 99.9 %, because a run is off by up to a tick.
		{pattern: "^BenchmarkSaturation$/alone", time: "8192000x"},
		{pattern: "^BenchmarkSaturation$/hogs", time: "8192000x"},
		{pattern: "^BenchmarkLease$", time: "100ms"},
		{pattern: "^BenchmarkFill$", time: "100ms"},
	}, generatorSections, generatorGoals},
	{"segments", "segments", 5, []step{
		{pattern: "^BenchmarkSegmentNext$/^c=1$", time: "100x"},
		{pattern: "^BenchmarkSegmentNext$/^c=2$", time: "100x"},
		{pattern: "^BenchmarkSegmentNext$/^c=8$", time: "100x"},
		{pattern: "^BenchmarkSegmentNext$/^c=64$", time: "100x"},
		{pattern: "^BenchmarkSegmentFill$", time: "500x"},
		{pattern: "^TestSegmentLatencyInSimulatedTime$"},
	}, segmentSections, segmentGoals},
	{"gorm", "GORM", 9, []step{
		// Without a server in between, one run of 15 ms is off by half.
		{pattern: "^Benchmark(GORM|Upsert)$/^SQLite$", time: "10x"},
		{pattern: "^Benchmark(GORM|Upsert)$/^(PostgreSQL|M.*)$", time: "3x"},
		{pattern: "^BenchmarkAssignment$", time: "50ms", folder: "../../../../gormplugin"},
	}, gormSections, gormGoals},
	{"sqlx", "sqlx", 21, []step{
		{pattern: "^BenchmarkSQLX$/^SQLite$", time: "1x"},
		{pattern: "^BenchmarkSQLX$/^PostgreSQL-pgx$", time: "1x"},
		{pattern: "^BenchmarkSQLX$/^PostgreSQL-pq$", time: "1x"},
		{pattern: "^BenchmarkSQLX$/^MariaDB$", time: "1x"},
		// Each in a process of its own, because memory of one would serve the next.
		{pattern: "^BenchmarkStream$/^SQLite$", time: "10000000x", once: true},
		{pattern: "^BenchmarkStream$/^PostgreSQL-pgx$/^snowkey$", time: "10000000x", once: true},
		{pattern: "^BenchmarkStream$/^PostgreSQL-pgx$/^snowkey-copy$", time: "10000000x", once: true},
		{pattern: "^BenchmarkStream$/^PostgreSQL-pq$", time: "10000000x", once: true},
		{pattern: "^BenchmarkStream$/^MariaDB$", time: "10000000x", once: true},
	}, sqlxSections, sqlxGoals},
}
