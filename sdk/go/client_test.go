package signpost_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/signpost"
)

const target = "https://example.com/menu?a=1&b=2"

// The service named by SIGNPOST_BASE_URL; test/sdk/go.test.ts runs these tests.
func service(t *testing.T) *signpost.Client {
	if os.Getenv("SIGNPOST_BASE_URL") == "" {
		t.Skip("SIGNPOST_BASE_URL and SIGNPOST_API_KEY name no service")
	}
	return must(signpost.New(""))
}

func TestRoundTrip(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client := service(t)

	created := must(client.Codes.Create(ctx, signpost.CreateCodeRequest{
		TargetURL: target, Name: "Tür", Folder: "Berlin", Tags: []string{"a", ""},
	}))
	expect(t, created.Folder.Name, "Berlin")
	expect(t, created.TargetURL, target)
	expect(t, len(created.Warnings), 1)
	expect(t, must(client.Codes.Get(ctx, created.ID)).ShortCode, created.ShortCode)
	changed := must(client.Codes.Update(ctx, created.ID, signpost.UpdateCodeRequest{
		Folder: signpost.Clear[string](), Paused: signpost.Set(true),
	}))
	expect(t, changed.Folder, nil)
	expect(t, *changed.Name, "Tür")
	expect(t, changed.Paused, true)
	expect(t, must(client.Codes.Analytics(ctx, created.ID, 7)).Period, 7)
	expect(t, bytes.HasPrefix(must(client.Codes.Image(ctx, created.ID, signpost.ImageParams{Size: 200})), []byte("\x89PNG")), true)

	batch := signpost.CreateBatchRequest{Name: "Import", Design: &signpost.DesignInput{ForegroundColor: "#123"}}
	for index := range 7 {
		row := signpost.BatchRowInput{TargetURL: target, ExternalRef: strconv.Itoa(index)}
		batch.Rows = append(batch.Rows, row)
	}
	createAll := func() (ids []string) {
		for created, err := range client.Batches.CreateAll(ctx, batch, 3, signpost.WithIdempotencyKey("import-1")) {
			ids = append(ids, must(created, err).ID)
		}
		return ids
	}
	ids := createAll()
	expect(t, len(ids), 3)
	expect(t, slices.Equal(createAll(), ids), true)
	expect(t, must(client.Batches.Wait(ctx, ids[0])).Counts.Created, 3)
	var refs, listed []string
	for _, row := range all(client.Batches.Rows(ctx, ids[0], signpost.RowsParams{Limit: 2})) {
		refs = append(refs, *row.ExternalRef)
	}
	expect(t, fmt.Sprint(refs), "[0 1 2]")
	expect(t, len(all(client.Batches.Rows(ctx, ids[0], signpost.RowsParams{Offset: -2, Limit: 2}))), 3)
	expect(t, len(all(client.Batches.List(ctx, signpost.PageParams{Offset: -2, Limit: 2}))), 3)
	for _, batch := range all(client.Batches.List(ctx, signpost.PageParams{Limit: 2})) {
		listed = append([]string{batch.ID}, listed...)
	}
	expect(t, slices.Equal(listed, ids), true)

	codes := map[string]bool{}
	for _, code := range all(client.Codes.List(ctx, signpost.ListCodesParams{Limit: 3})) {
		codes[code.ID] = true
	}
	expect(t, len(codes), 8)
	// A list can be iterated over again, from its beginning.
	expectSameTwice(t, client.Codes.List(ctx, signpost.ListCodesParams{Limit: 3}), 8)
	expectSameTwice(t, client.Batches.List(ctx, signpost.PageParams{Limit: 2}), 3)
	expectSameTwice(t, client.Batches.Rows(ctx, ids[0], signpost.RowsParams{Limit: 2}), 3)
	params := signpost.ListCodesParams{Tags: []string{"a", "b"}, Folder: "none"}
	expect(t, must(client.Codes.Page(ctx, params)).Total, 1)
	expect(t, client.Codes.Delete(ctx, created.ID), nil)
	expect(t, must(client.Folders(ctx))[0].Name, "Berlin")
	expect(t, must(client.Tags(ctx))[0].CodeCount, 0)
	expect(t, bytes.Contains(must(client.OpenAPI(ctx)), []byte(`"openapi":"3.1.0"`)), true)
}

// The account of LIMITED_API_KEY has a limit of three codes. An import that is refused continues where it was, as soon as
// there is room.
func TestRefusedImport(t *testing.T) {
	service(t)
	client := must(signpost.New(os.Getenv("LIMITED_API_KEY")))
	batch := signpost.CreateBatchRequest{Name: "Refused"}
	for index := range 7 {
		batch.Rows = append(batch.Rows, signpost.BatchRowInput{TargetURL: target, ExternalRef: strconv.Itoa(index)})
	}
	var ids []string
	for number, refs := range []string{"[0 1 2]", "[3 4 5]", "[6]"} {
		before := ids
		ids = nil
		var failure *signpost.APIError
		for created, err := range client.Batches.CreateAll(t.Context(), batch, 3, signpost.WithIdempotencyKey("refused")) {
			if errors.As(err, &failure) {
				expect(t, failure.Code, signpost.ErrorBodyCodeQrLimitReached)
				expect(t, failure.Limit, 3)
				expect(t, failure.Header.Get("Idempotent-Replay"), "false")
				break
			}
			ids = append(ids, must(created, err).ID)
		}
		expect(t, failure == nil, number == 2)
		expect(t, len(ids), number+1)
		expect(t, slices.Equal(ids[:number], before), true)
		must(client.Batches.Wait(t.Context(), ids[number]))
		var created []string
		for _, row := range all(client.Batches.Rows(t.Context(), ids[number], signpost.RowsParams{})) {
			created = append(created, *row.ExternalRef)
			expect(t, client.Codes.Delete(t.Context(), *row.ID), nil)
		}
		expect(t, fmt.Sprint(created), refs)
	}
	var listed []string
	for _, batch := range all(client.Batches.List(t.Context(), signpost.PageParams{})) {
		listed = append([]string{batch.ID}, listed...)
	}
	expect(t, slices.Equal(listed, ids), true)
}

// A refusal that is replayed for each of its keys ends a call of many batches.
func TestLastingRefusal(t *testing.T) {
	var keys []string
	server := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		keys = append(keys, request.Header.Get("Idempotency-Key"))
		response.Header().Set("Idempotent-Replay", "true")
		response.WriteHeader(http.StatusForbidden)
	}))
	defer server.Close()
	client := must(signpost.New("sk_live_x", signpost.WithBaseURL(server.URL)))
	batch := signpost.CreateBatchRequest{Rows: []signpost.BatchRowInput{{TargetURL: target}}}
	for _, err := range client.Batches.CreateAll(t.Context(), batch, 0, signpost.WithIdempotencyKey("k")) {
		var failure *signpost.APIError
		expect(t, errors.As(err, &failure) && failure.Status == http.StatusForbidden, true)
	}
	expect(t, len(keys), 21)
	expect(t, strings.Join([]string{keys[0], keys[1], keys[20]}, " "), "k/1 k/1.1 k/1.20")
}

func TestErrors(t *testing.T) {
	client := service(t)
	var failure *signpost.APIError

	_, err := client.Codes.Create(t.Context(), signpost.CreateCodeRequest{TargetURL: "ftp://example.com"})
	expect(t, errors.As(err, &failure), true)
	expect(t, failure.Status, http.StatusBadRequest)
	expect(t, failure.Field, "target_url")
	expect(t, failure.RequestID != "", true)

	_, err = client.Codes.Get(t.Context(), "qr_unknown")
	expect(t, errors.As(err, &failure) && failure.Status == http.StatusNotFound, true)

	_, err = must(signpost.New("sk_live_wrong")).Tags(t.Context())
	expect(t, errors.As(err, &failure) && failure.Status == http.StatusUnauthorized, true)
}

func TestRetriesAreBounded(t *testing.T) {
	for name, each := range map[string]struct {
		status     int
		retryAfter string
		requests   int
	}{
		"a monthly quota that is used up":   {429, "", 1},
		"a Retry-After that is too long":    {429, "61", 1},
		"one that is too long for a number": {503, "99999999999999999999", 1},
		"one that is a date":                {429, "Wed, 21 Oct 2015 07:28:00 GMT", 3},
		"one that is a date far ahead":      {503, "Fri, 31 Dec 9999 23:59:59 GMT", 1},
		"one that is neither":               {429, "1.5", 1},
		"a conflict of the first attempt":   {409, "", 1},
		"a redirect":                        {302, "", 1},
		"a failure that lasts":              {500, "", 3},
		"a service that stays unavailable":  {503, "0", 3},
		"too many requests for a long time": {429, "0", 3},
	} {
		t.Run(name, func(t *testing.T) {
			requests := 0
			server := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, _ *http.Request) {
				requests++
				response.Header().Set("Location", "https://example.com/")
				if each.retryAfter != "" {
					response.Header().Set("Retry-After", each.retryAfter)
				}
				response.WriteHeader(each.status)
			}))
			defer server.Close()
			client := must(signpost.New("sk_live_x", signpost.WithBaseURL(server.URL), signpost.WithRetries(2, time.Minute)))
			_, err := client.Codes.Create(t.Context(), signpost.CreateCodeRequest{TargetURL: target})
			var failure *signpost.APIError
			expect(t, errors.As(err, &failure) && failure.Status == each.status, true)
			expect(t, strings.HasSuffix(failure.Message, "a redirect to https://example.com/"), each.status == 302)
			expect(t, requests, each.requests)
		})
	}
}

// A proxy that redirects http to https: followed, the deletion would be a GET, which succeeds.
func TestRedirectsAreNotFollowed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		if request.Method == http.MethodGet {
			fmt.Fprint(response, `{"success":true,"data":{"id":"qr_x"}}`)
			return
		}
		http.Redirect(response, request, request.URL.Path, http.StatusMovedPermanently)
	}))
	defer server.Close()
	for _, option := range []signpost.Option{signpost.WithRetries(0, 0), signpost.WithHTTPClient(&http.Client{})} {
		client := must(signpost.New("sk_live_x", signpost.WithBaseURL(server.URL), option))
		_, updated := client.Codes.Update(t.Context(), "qr_x", signpost.UpdateCodeRequest{Paused: signpost.Set(true)})
		for _, err := range []error{updated, client.Codes.Delete(t.Context(), "qr_x")} {
			var failure *signpost.APIError
			expect(t, errors.As(err, &failure) && failure.Status == http.StatusMovedPermanently, true)
		}
	}
}

func TestDeleteIsDoneOnce(t *testing.T) {
	for name, each := range map[string]struct {
		statuses []int
		err      bool
	}{
		"an unknown code":                         {[]int{404}, true},
		"an unknown code after too many requests": {[]int{429, 404}, true},
		"an attempt that failed before":           {[]int{500, 429, 404}, false},
	} {
		t.Run(name, func(t *testing.T) {
			requests := 0
			server := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, _ *http.Request) {
				response.Header().Set("Retry-After", "0")
				response.WriteHeader(each.statuses[requests])
				requests++
			}))
			defer server.Close()
			client := must(signpost.New("sk_live_x", signpost.WithBaseURL(server.URL)))
			expect(t, client.Codes.Delete(t.Context(), "qr_x") != nil, each.err)
			expect(t, requests, len(each.statuses))
		})
	}
}

// inTurn is a server that gives answers one after another: a status, and a Retry-After unless it is empty.
func inTurn(t *testing.T, answers ...[2]string) (address string, at *[]time.Time, keys map[string]bool) {
	at, keys = &[]time.Time{}, map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		answer := answers[len(*at)]
		*at = append(*at, time.Now())
		keys[request.Header.Get("Idempotency-Key")] = true
		if answer[1] != "" {
			response.Header().Set("Retry-After", answer[1])
		}
		response.WriteHeader(must(strconv.Atoi(answer[0])))
		fmt.Fprint(response, `{"data":{}}`)
	}))
	t.Cleanup(server.Close)
	return server.URL, at, keys
}

// A creation in flight is awaited beyond the retries, at most once a second, with its key.
func TestInFlight(t *testing.T) {
	t.Parallel()
	url, at, keys := inTurn(t, [2]string{"503", "0"}, [2]string{"409", "0"}, [2]string{"409", "1"}, [2]string{"409", "0"}, [2]string{"201", ""})
	client := must(signpost.New("sk_live_x", signpost.WithBaseURL(url), signpost.WithRetries(1, time.Minute)))
	must(client.Codes.Create(t.Context(), signpost.CreateCodeRequest{TargetURL: target}))
	expect(t, len(*at), 5)
	expect(t, len(keys), 1)
	for index := 2; index < 5; index++ {
		expect(t, (*at)[index].Sub((*at)[index-1]) >= 995*time.Millisecond, true)
	}
}

// The error of a creation has its key, whether it was given one or not.
func TestConflicts(t *testing.T) {
	t.Parallel()
	for name, each := range map[string]struct {
		answers            [][2]string
		retries, requests  int
		expectedRetryAfter int
	}{
		"in flight for more than 30 seconds":                     {[][2]string{{"409", "16"}, {"409", "16"}, {"201", ""}}, 4, 2, 16},
		"in flight, without retries":                             {[][2]string{{"409", "1"}, {"201", ""}}, 0, 1, 1},
		"a key used for something else, also after a failure":    {[][2]string{{"503", "0"}, {"409", ""}, {"201", ""}}, 4, 2, -1},
		"a key used for something else, after too many requests": {[][2]string{{"429", "0"}, {"409", ""}, {"201", ""}}, 4, 2, -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, at, keys := inTurn(t, each.answers...)
			client := must(signpost.New("sk_live_x", signpost.WithBaseURL(url), signpost.WithRetries(each.retries, time.Minute)))
			_, err := client.Codes.Create(t.Context(), signpost.CreateCodeRequest{TargetURL: target})
			var failure *signpost.APIError
			expect(t, errors.As(err, &failure) && failure.Status == http.StatusConflict, true)
			expect(t, failure.RetryAfter, each.expectedRetryAfter)
			expect(t, len(*at), each.requests)
			expect(t, len(keys) == 1 && keys[failure.IdempotencyKey], true)
		})
	}
}

// Whoever limits the time of a creation gets the key that was generated for it, with which it can be repeated.
func TestCreationWhoseContextEnds(t *testing.T) {
	t.Parallel()
	for name, isAnswered := range map[string]bool{"during an attempt": false, "before a repetition": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keys := make(chan string, 1)
			server := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
				io.Copy(io.Discard, request.Body)
				keys <- request.Header.Get("Idempotency-Key")
				if isAnswered {
					response.Header().Set("Retry-After", "30")
					response.WriteHeader(http.StatusServiceUnavailable)
				} else {
					<-request.Context().Done()
				}
			}))
			defer server.Close()
			client := must(signpost.New("sk_live_x", signpost.WithBaseURL(server.URL)))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := client.Codes.Create(ctx, signpost.CreateCodeRequest{TargetURL: target})
			var connection *signpost.ConnectionError
			expect(t, errors.As(err, &connection) && errors.Is(err, context.DeadlineExceeded), true)
			expect(t, connection.IdempotencyKey, <-keys)
		})
	}
}

// net/http itself repeats some requests on connections that were used before. Here every POST is sent once, and the error
// has the key with which the call can be repeated.
func TestNoHiddenRetries(t *testing.T) {
	var posts []string
	server := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		if request.Method == http.MethodGet {
			fmt.Fprint(response, `{"success":true,"data":[]}`)
			return
		}
		posts = append(posts, request.Header.Get("Idempotency-Key"))
		io.Copy(io.Discard, request.Body)
		connection, _ := must2(response.(http.Hijacker).Hijack())
		connection.Close()
	}))
	defer server.Close()
	client := must(signpost.New("sk_live_x", signpost.WithBaseURL(server.URL), signpost.WithRetries(0, 0)))
	must(client.Tags(t.Context()))
	var connection *signpost.ConnectionError
	_, err := client.Codes.Create(t.Context(), signpost.CreateCodeRequest{TargetURL: target})
	expect(t, errors.As(err, &connection), true)
	expect(t, strings.Join(posts, " "), connection.IdempotencyKey)

	posts = nil
	must(client.Tags(t.Context()))
	batch := signpost.CreateBatchRequest{Rows: []signpost.BatchRowInput{{TargetURL: target}}}
	for _, err := range client.Batches.CreateAll(t.Context(), batch, 0) {
		expect(t, errors.As(err, &connection), true)
	}
	expect(t, strings.Join(posts, " "), connection.IdempotencyKey+"/1")
}

func TestLargeResponses(t *testing.T) {
	const most = 64 << 20
	for _, size := range []int{most, most + 1} {
		server := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, _ *http.Request) {
			response.Header().Set("Content-Type", "image/png")
			response.Write(make([]byte, size))
		}))
		defer server.Close()
		client := must(signpost.New("sk_live_x", signpost.WithBaseURL(server.URL)))
		image, err := client.Codes.Image(t.Context(), "qr_x", signpost.ImageParams{})
		expect(t, err != nil && err.Error() == "signpost: the response has more than 64 MiB", size > most)
		expect(t, len(image) == size, size == most)
	}
}

// A wait that a time.Duration can't hold, with the time that spreads clients, is no reason to repeat at once.
func TestLongRetryAfter(t *testing.T) {
	for _, retryAfter := range []string{"99999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT"} {
		url, at, _ := inTurn(t, [2]string{"503", retryAfter}, [2]string{"503", "61"}, [2]string{"503", "61"})
		client := must(signpost.New("sk_live_x", signpost.WithBaseURL(url), signpost.WithRetries(1, math.MaxInt64)))
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, err := client.Tags(ctx)
		expect(t, errors.Is(err, context.DeadlineExceeded), true)
		expect(t, len(*at), 1)
	}
}

func TestChanges(t *testing.T) {
	changes := signpost.UpdateCodeRequest{Tags: signpost.Set([]string(nil)), Folder: signpost.Clear[string]()}
	expect(t, string(must(json.Marshal(changes))), `{"folder":null,"tags":[]}`)
}

func TestInvalidKeys(t *testing.T) {
	_, err := signpost.New("sk_live_secret\n", signpost.WithBaseURL("http://127.0.0.1:1"))
	expect(t, strings.Contains(err.Error(), "visible ASCII") && !strings.Contains(err.Error(), "secret"), true)
	client := must(signpost.New("sk_live_x", signpost.WithBaseURL("http://127.0.0.1:1")))
	_, err = client.Codes.Create(t.Context(), signpost.CreateCodeRequest{TargetURL: target}, signpost.WithIdempotencyKey("2026\n11"))
	var connection *signpost.ConnectionError
	expect(t, err != nil && !errors.As(err, &connection), true)
}

// An empty key, such as that of a variable that is not set, must not let repetitions create twice.
func TestEmptyIdempotencyKeys(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was sent") }))
	defer server.Close()
	client := must(signpost.New("sk_live_x", signpost.WithBaseURL(server.URL), signpost.WithRetries(0, 0)))
	empty := signpost.WithIdempotencyKey("")
	_, err := client.Codes.Create(t.Context(), signpost.CreateCodeRequest{TargetURL: target}, empty)
	expect(t, err != nil && strings.Contains(err.Error(), "must not be empty"), true)
	batch := signpost.CreateBatchRequest{Rows: []signpost.BatchRowInput{{TargetURL: target}}}
	for _, err := range client.Batches.CreateAll(t.Context(), batch, 0, empty) {
		expect(t, err != nil && strings.Contains(err.Error(), "must not be empty"), true)
	}
}

// encoding/json would send another target.
func TestNotUTF8(t *testing.T) {
	client := must(signpost.New("sk_live_x", signpost.WithBaseURL("http://127.0.0.1:1"), signpost.WithRetries(0, 0)))
	latin1 := "https://example.com/caf\xe9"
	_, created := client.Codes.Create(t.Context(), signpost.CreateCodeRequest{TargetURL: target, Tags: []string{latin1}})
	_, updated := client.Codes.Update(t.Context(), "qr_x", signpost.UpdateCodeRequest{TargetURL: signpost.Set(latin1)})
	errs := []error{created, updated}
	rows := []signpost.BatchRowInput{{TargetURL: target}, {TargetURL: latin1}}
	for _, err := range client.Batches.CreateAll(t.Context(), signpost.CreateBatchRequest{Rows: rows}, 0) {
		errs = append(errs, err)
	}
	expect(t, len(errs), 3)
	for _, err := range errs {
		expect(t, err != nil && err.Error() == `signpost: "https://example.com/caf\xe9" is not UTF-8`, true)
	}
}

// A batch has as many rows as fit into 3,500,000 bytes.
func TestBatchesOfManyBytes(t *testing.T) {
	var sent []int
	server := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		sent = append(sent, len(must(io.ReadAll(request.Body))))
		fmt.Fprint(response, `{"data":{"id":"batch_x"}}`)
	}))
	defer server.Close()
	client := must(signpost.New("sk_live_x", signpost.WithBaseURL(server.URL)))
	row := signpost.BatchRowInput{TargetURL: target, Name: strings.Repeat("ü", 200)}
	batch := signpost.CreateBatchRequest{Rows: slices.Repeat([]signpost.BatchRowInput{row}, 10_000)}
	for created, err := range client.Batches.CreateAll(t.Context(), batch, 0) {
		expect(t, err, nil)
		expect(t, created.ID, "batch_x")
	}
	rowBytes := (sent[0] + sent[1]) / len(batch.Rows)
	expect(t, len(sent), 2)
	expect(t, sent[0] <= 3_500_000 && sent[0]+rowBytes+1 > 3_500_000, true)
}

func TestInvalidAddresses(t *testing.T) {
	for _, address := range []string{
		"localhost:8080", "signpost.example.com", "ftp://signpost.example.com", "https://", "https://user:secret@signpost.example.com",
	} {
		_, err := signpost.New("sk_live_x", signpost.WithBaseURL(address))
		expect(t, err != nil && strings.Contains(err.Error(), "an http or https URL"), true)
	}
}

// At a wrong address something else may answer.
func TestAnswersOfSomethingElse(t *testing.T) {
	for _, body := range []string{"<!doctype html>", "", "null", `{"status":"ok"}`, `{"data":null}`} {
		server := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(response, body)
		}))
		defer server.Close()
		client := must(signpost.New("sk_live_x", signpost.WithBaseURL(server.URL)))
		_, tags := client.Tags(t.Context())
		_, created := client.Codes.Create(t.Context(), signpost.CreateCodeRequest{TargetURL: target})
		_, got := client.Codes.Get(t.Context(), "qr_x")
		_, listed := client.Codes.Page(t.Context(), signpost.ListCodesParams{})
		_, image := client.Codes.Image(t.Context(), "qr_x", signpost.ImageParams{})
		_, document := client.OpenAPI(t.Context())
		for index, err := range []error{tags, created, got, listed, image, document, client.Codes.Delete(t.Context(), "qr_x")} {
			if err == nil || !strings.Contains(err.Error(), "is not that of the API") {
				t.Fatalf("%q, call %d: %v", body, index, err)
			}
		}
	}
}

func TestNoTimeout(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(response, `{"success":true,"data":[]}`)
	}))
	defer server.Close()
	client := must(signpost.New("sk_live_x", signpost.WithBaseURL(server.URL), signpost.WithTimeout(0), signpost.WithRetries(0, 0)))
	expect(t, len(must(client.Tags(t.Context()))), 0)
}

func TestNoService(t *testing.T) {
	client := must(signpost.New("sk_live_secret", signpost.WithBaseURL("http://127.0.0.1:1"), signpost.WithRetries(1, time.Minute)))
	_, err := client.Tags(t.Context())
	var connection *signpost.ConnectionError
	expect(t, errors.As(err, &connection), true)
	expect(t, strings.Contains(err.Error(), "secret"), false)
}

func must2[T, U any](value T, other U, err error) (T, U) {
	return must(value, err), other
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func all[T any](items iter.Seq2[T, error]) (list []T) {
	for item, err := range items {
		list = append(list, must(item, err))
	}
	return list
}

func expectSameTwice[T any](t *testing.T, items iter.Seq2[T, error], length int) {
	t.Helper()
	first := all(items)
	expect(t, len(first), length)
	expect(t, reflect.DeepEqual(all(items), first), true)
}

func expect[T comparable](t *testing.T, actual, expected T) {
	t.Helper()
	if actual != expected {
		t.Fatalf("got %v, expected %v", actual, expected)
	}
}
