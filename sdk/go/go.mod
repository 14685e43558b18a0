module example.com/signpost

go 1.24
