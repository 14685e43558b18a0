package signpost

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"time"
)

// The limits of one batch.
const (
	MaxBatchRows  = 25_000
	maxBatchBytes = 3_500_000
)

// maxRejections is how often a rejected part is sent again with another key: enough for a job that repeats it every 90
// minutes for a day. Each time it is sent with all the keys before.
const maxRejections = 20

// The waits between two looks at a batch that is not completed: they double.
const (
	firstWait   = 500 * time.Millisecond
	longestWait = 10 * time.Second
)

// Batches create many codes in one request.
type Batches struct{ transport *transport }

// CreatedBatch is a new batch.
type CreatedBatch struct {
	Batch
	// Warnings are sentences about colours that scanners may be unable to read.
	Warnings []string
}

// batchWithRows is a batch with a page of its rows.
type batchWithRows struct {
	Batch
	Rows []BatchRow `json:"rows"`
}

// PageParams selects a page by offset.
type PageParams struct {
	// Limit is the page size: 1 to 100; default 25.
	Limit int
	// Offset is the number of items to skip.
	Offset int
}

// RowsParams selects rows of a batch.
type RowsParams struct {
	// Status selects rows of this status alone.
	Status BatchRowStatus
	// Limit is the page size: 1 to 1,000, which is the default here.
	Limit int
	// Offset is the number of rows to skip.
	Offset int
}

// List iterates over the batches of the account, newest first, without their rows.
func (b *Batches) List(ctx context.Context, params PageParams) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		offset, total, last := params.Offset, 0, ""
		items(func(page *Page[Batch]) (*Page[Batch], error) {
			if page != nil && offset >= total {
				return nil, nil
			}
			query := url.Values{}
			setUnlessZero(query, "limit", params.Limit)
			setUnlessZero(query, "offset", offset)
			var body envelope[[]Batch]
			if err := b.transport.json(ctx, request{method: http.MethodGet, path: "/batches", query: query}, &body); err != nil {
				return nil, err
			}
			if len(body.Data) == 0 {
				return nil, nil
			}
			found := &Page[Batch]{Total: body.Total, Limit: body.Pagination.Limit}
			for _, batch := range body.Data {
				// Batches that were created meanwhile have moved earlier ones, whose ids are greater, onto this page.
				if last == "" || batch.ID < last {
					found.Items = append(found.Items, batch)
					last = batch.ID
				}
			}
			offset, total = body.Pagination.used(offset)+len(body.Data), body.Total
			return found, nil
		})(yield)
	}
}

// Create creates one batch: at most MaxBatchRows rows and 3,500,000 bytes. It may still be processing: see Wait.
func (b *Batches) Create(ctx context.Context, batch CreateBatchRequest, options ...CreateOption) (*CreatedBatch, error) {
	var body envelope[Batch]
	if err := b.transport.json(ctx, creation("/batches", batch, options), &body); err != nil {
		return nil, err
	}
	return &CreatedBatch{body.Data, body.Warnings}, nil
}

// CreateAll creates as many batches as the rows need, one after another, and yields each. rowsPerBatch is what the plan
// allows; 0 stands for MaxBatchRows.
//
// If one fails, or is rejected, for example because the account has as many codes as its plan allows, the same call within
// 24 hours of the first continues after the batches that exist already: with the same rows in the same order, the same
// fields, the same rowsPerBatch, and the same WithIdempotencyKey of at most 200 characters. To change any of these, pass
// the rows that are in no batch yet, with a new key. Rows that were skipped stay skipped: pass them with a new key, too.
func (b *Batches) CreateAll(ctx context.Context, batch CreateBatchRequest, rowsPerBatch int, options ...CreateOption) iter.Seq2[*CreatedBatch, error] {
	if rowsPerBatch <= 0 || rowsPerBatch > MaxBatchRows {
		rowsPerBatch = MaxBatchRows
	}
	key := creation("", nil, options).idempotencyKey
	return func(yield func(*CreatedBatch, error) bool) {
		if key == "" {
			yield(nil, errEmptyKey)
			return
		}
		part := 0
		for rows, err := range splitRows(batch, rowsPerBatch) {
			if err != nil {
				yield(nil, err)
				return
			}
			part++
			some := batch
			some.Rows = rows
			created, err := b.createPart(ctx, some, fmt.Sprintf("%s/%d", key, part))
			// The caller repeats the call, and not the part.
			if !yield(created, withKey(err, key)) || err != nil {
				return
			}
		}
	}
}

// createPart creates a batch. A rejection is stored with its key, so one that is replayed may no longer hold; it has
// created nothing. The batch is sent again with the key "key.1", "key.2", and so on: every run reaches the same first one
// that is not rejected.
func (b *Batches) createPart(ctx context.Context, batch CreateBatchRequest, key string) (*CreatedBatch, error) {
	created, err := b.Create(ctx, batch, WithIdempotencyKey(key))
	for rejections := 1; rejections <= maxRejections && isReplay(err); rejections++ {
		created, err = b.Create(ctx, batch, WithIdempotencyKey(fmt.Sprintf("%s.%d", key, rejections)))
	}
	return created, err
}

func isReplay(err error) bool {
	var failure *APIError
	return errors.As(err, &failure) && failure.Header.Get("Idempotent-Replay") == "true"
}

// Get reads a batch without its rows.
func (b *Batches) Get(ctx context.Context, id string) (*Batch, error) {
	return read[*Batch](ctx, b.transport, batchPath(id), url.Values{"limit": {"1"}})
}

// Rows iterates over the rows of a batch in the order sent. Wait before you list those of one status: rows that change
// theirs between two pages make later ones move up, and be left out.
func (b *Batches) Rows(ctx context.Context, id string, params RowsParams) iter.Seq2[BatchRow, error] {
	if params.Limit == 0 {
		params.Limit = 1_000
	}
	return func(yield func(BatchRow, error) bool) {
		offset, total := params.Offset, 0
		items(func(page *Page[BatchRow]) (*Page[BatchRow], error) {
			if page != nil && offset >= total {
				return nil, nil
			}
			query := url.Values{}
			setUnlessZero(query, "limit", params.Limit)
			setUnlessZero(query, "offset", offset)
			if params.Status != "" {
				query.Set("status", string(params.Status))
			}
			var body envelope[batchWithRows]
			if err := b.transport.json(ctx, request{method: http.MethodGet, path: batchPath(id), query: query}, &body); err != nil {
				return nil, err
			}
			if len(body.Data.Rows) == 0 {
				return nil, nil
			}
			offset, total = body.Pagination.used(offset)+len(body.Data.Rows), body.Total
			return &Page[BatchRow]{Items: body.Data.Rows, Total: body.Total, Limit: body.Pagination.Limit}, nil
		})(yield)
	}
}

// Wait returns when every row is created, failed or skipped, or when ctx ends.
func (b *Batches) Wait(ctx context.Context, id string) (*Batch, error) {
	for delay := firstWait; ; delay = min(2*delay, longestWait) {
		batch, err := b.Get(ctx, id)
		if err != nil || batch.Status == BatchStatusCompleted {
			return batch, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(delay):
		}
	}
}

// splitRows splits rows so that each part fits in one batch. A row that does not fit alone is a part of its own.
func splitRows(batch CreateBatchRequest, most int) iter.Seq2[[]BatchRowInput, error] {
	return func(yield func([]BatchRowInput, error) bool) {
		rows := batch.Rows
		batch.Rows = []BatchRowInput{}
		empty, err := encode(batch)
		if err != nil {
			yield(nil, err)
			return
		}
		from, size := 0, len(empty)
		for index, row := range rows {
			encoded, err := encode(row)
			if err != nil {
				yield(nil, err)
				return
			}
			// With its comma.
			added := len(encoded) + 1
			if index > from && (index-from == most || size+added > maxBatchBytes) {
				if !yield(rows[from:index], nil) {
					return
				}
				from, size = index, len(empty)
			}
			size += added
		}
		if from < len(rows) {
			yield(rows[from:], nil)
		}
	}
}

func batchPath(id string) string { return "/batches/" + url.PathEscape(id) }
