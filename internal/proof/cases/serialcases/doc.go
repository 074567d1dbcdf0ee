// Package serialcases has the tests of package sqlserial that each database must pass.
package serialcases
