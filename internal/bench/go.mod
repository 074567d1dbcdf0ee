module github.com/snowkey/snowkey/internal/bench

go 1.25.0

require (
	github.com/bwmarrin/snowflake v0.3.0
	github.com/disgoorg/snowflake/v2 v2.0.3
	github.com/gofrs/uuid/v5 v5.5.1
	github.com/google/uuid v1.6.0
	github.com/mattn/go-sqlite3 v1.14.52
	github.com/oklog/ulid/v2 v2.1.2
	github.com/rs/xid v1.6.0
	github.com/segmentio/ksuid v1.0.4
	github.com/snowkey/snowkey v0.0.0
	github.com/sony/sonyflake/v2 v2.2.0
)

replace github.com/snowkey/snowkey => ../..
