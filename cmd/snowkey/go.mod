module github.com/snowkey/snowkey/cmd/snowkey

go 1.25.0

replace github.com/snowkey/snowkey => ../..

require github.com/snowkey/snowkey v0.0.0-00010101000000-000000000000
