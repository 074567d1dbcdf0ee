module github.com/snowkey/snowkey/internal/fire

go 1.25.0

replace (
	github.com/snowkey/snowkey => ../..
	github.com/snowkey/snowkey/core/lease/redislease => ../../core/lease/redislease
)

require github.com/snowkey/snowkey v0.0.0-00010101000000-000000000000

require (
	github.com/anishathalye/porcupine v1.3.1
	github.com/go-sql-driver/mysql v1.10.1
	github.com/redis/go-redis/v9 v9.7.3
	github.com/snowkey/snowkey/core/lease/redislease v0.0.0-00010101000000-000000000000
)

require (
	filippo.io/edwards25519 v1.2.0 // indirect
	github.com/cespare/xxhash/v2 v2.2.0 // indirect
	github.com/dgryski/go-rendezvous v0.0.0-20200823014737-9f7001d12a5f // indirect
)
