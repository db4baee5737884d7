package harness

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// scrapeMax bounds what is read of a server's metrics.
const scrapeMax = 8 << 20

// scrape reads Prometheus metrics in the text form: the sum of each name's
// samples, whatever their labels.
func scrape(ctx context.Context, url string) (map[string]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: status %d", url, res.StatusCode)
	}
	all := map[string]float64{}
	lines := bufio.NewScanner(io.LimitReader(res.Body, scrapeMax))
	for lines.Scan() {
		line := lines.Text()
		end := strings.LastIndexByte(line, ' ')
		if end < 0 || line[0] == '#' {
			continue
		}
		if v, err := strconv.ParseFloat(line[end+1:], 64); err == nil {
			name, _, _ := strings.Cut(line[:end], "{")
			all[name] += v
		}
	}
	return all, lines.Err()
}

// answers reports whether the URL answers with status 200.
func answers(ctx context.Context, url string) error {
	_, err := scrape(ctx, url)
	return err
}
