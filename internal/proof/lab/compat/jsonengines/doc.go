// Package jsonengines tests package types with JSON engines that take the place of
// encoding/json. It imports nothing else, so that the newest Go can run it soon.
package jsonengines
