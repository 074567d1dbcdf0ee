module github.com/snowkey/snowkey/internal/proof/release/rehearsal

go 1.25.0

replace github.com/snowkey/snowkey => ../../../..

require (
	github.com/snowkey/snowkey v0.0.0-00010101000000-000000000000
	golang.org/x/mod v0.38.0
)
