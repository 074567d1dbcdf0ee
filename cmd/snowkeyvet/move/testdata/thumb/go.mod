module example.com/thumb

go 1.25.0

require gorm.io/gorm v1.0.0

replace gorm.io/gorm => ../shop/gorm
