// Package assert stands for that of testify.
package assert

import "testing"

func Equal(t *testing.T, expected, actual any, msgAndArgs ...any) {}

func Contains(t *testing.T, s, contains any, msgAndArgs ...any) {}
