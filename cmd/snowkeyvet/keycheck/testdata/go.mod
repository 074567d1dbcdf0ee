module example.com/shop

go 1.25.0

require (
	github.com/gin-gonic/gin v1.0.0
	github.com/snowkey/snowkey v0.0.0-00010101000000-000000000000
	gorm.io/gorm v1.30.2
)

replace (
	github.com/gin-gonic/gin => ./gin
	github.com/snowkey/snowkey => ../../../..
	gorm.io/gorm => ./gorm
)
