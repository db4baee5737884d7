package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"tailcast/bench/harness"
)

// nchanConf is for one worker, whose limits fit the streams. The message buffer
// holds 10 s at 100 messages a second, so that a subscriber that is behind does
// not miss any; the shared memory holds many times that. nginx has room for
// twice the connections, because when less than a sixteenth is left it closes
// those that have not sent their request yet. The pool of a request is half of
// nginx's default, which saves 2 KB a stream.
const nchanConf = `load_module %[1]s;
worker_processes 1;
worker_rlimit_nofile %[2]d;
daemon off;
pid nginx.pid;
error_log stderr warn;
events { worker_connections %[4]d; multi_accept on; }
http {
  access_log off;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  keepalive_requests 1000000000;
  request_pool_size 2k;
  nchan_shared_memory_size 128M;
  server {
    listen %[3]s backlog=4096;
    location = /events { nchan_subscriber eventsource; nchan_channel_id bench; nchan_subscriber_first_message newest; }
    location = /publish {
      nchan_publisher http; nchan_channel_id bench; nchan_message_buffer_length 1000; nchan_message_timeout 1m;
    }
  }
}
`

// nchanModule is where Debian puts it.
const nchanModule = "/usr/lib/nginx/modules/ngx_nchan_module.so"

// nchanSpare is how many file descriptors nginx has besides the streams'.
const nchanSpare = 500

func nchanTarget(t *tools) (harness.Target, error) {
	nginx, err := exec.LookPath(t.nginx)
	if err != nil {
		return harness.Target{}, fmt.Errorf("-nginx: %w (Debian: apt-get install nginx libnginx-mod-nchan)", err)
	}
	if _, err := os.Stat(t.nchanModule); err != nil {
		return harness.Target{}, fmt.Errorf("-nchan-module: %w (Debian: apt-get install libnginx-mod-nchan)", err)
	}
	return harness.Target{
		Name: "nchan", Version: nchanVersion(nginx), Checks: harness.Checks{Records: true},
		Start: func(ctx context.Context, s *harness.Setup) (*harness.Server, error) {
			addr, err := freeAddr()
			if err != nil {
				return nil, err
			}
			conf := fmt.Sprintf(nchanConf, t.nchanModule, s.Streams+nchanSpare, addr, 2*s.Streams+nchanSpare)
			if err := os.WriteFile(filepath.Join(s.Dir, "nginx.conf"), []byte(conf), 0o600); err != nil {
				return nil, err
			}
			p, err := s.Command(harness.OnServer, nginx, "-e", "stderr", "-p", s.Dir, "-c", "nginx.conf")
			if err != nil {
				return nil, err
			}
			if err := listening(ctx, p, addr); err != nil {
				return nil, err
			}
			var workers []int
			if err := p.Await(ctx, func(context.Context) error {
				if workers = children(p.PID()); len(workers) == 0 {
					return errors.New("it has no worker")
				}
				return nil
			}); err != nil {
				return nil, err
			}
			publisher, err := startPoster(s, t, "http://"+addr+"/publish", "", "")
			if err != nil {
				return nil, err
			}
			return &harness.Server{URL: "http://" + addr + "/events", PIDs: append(workers, p.PID()), Publisher: publisher}, nil
		},
	}, nil
}

// nchanVersion is what nginx and Debian say, as far as they do.
func nchanVersion(nginx string) string {
	said, _ := exec.Command(nginx, "-v").CombinedOutput() // an unknown version is no reason not to measure
	_, version, _ := strings.Cut(strings.TrimSpace(string(said)), "nginx/")
	module, err := exec.Command("dpkg-query", "-W", "-f", "${Version}", "libnginx-mod-nchan").Output()
	if err != nil {
		return "nginx " + version
	}
	return fmt.Sprintf("%s (nginx %s)", module, version)
}
