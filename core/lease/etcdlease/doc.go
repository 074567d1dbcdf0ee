package etcdlease
