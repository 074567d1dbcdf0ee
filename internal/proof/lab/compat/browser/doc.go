// Package browser clicks through the page of examples/web in headless Chromium. It runs the
// program as a user does, and looks at what the browser shows.
package browser
