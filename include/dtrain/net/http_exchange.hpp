// One short HTTP request and its whole answer, for services that answer at once.
#pragma once

#include <chrono>
#include <stop_token>
#include <string>
#include <vector>

namespace dtrain::net {

struct HttpRequest {
  std::string url;  // http or https
  std::string method = "GET";
  std::vector<std::string> headers{};         // "Name: value"
  std::chrono::milliseconds deadline{1'000};  // of all of it
  std::string body{};
};
struct HttpAnswer {
  long status = 0;
  std::string body;  // at most 1 MiB
};

// Blocks. Neither proxies nor redirects are followed. Throws RemoteError when no whole answer came in time, or
// `cancel` was asked for.
HttpAnswer exchange_http(const HttpRequest& request, const std::stop_token& cancel = {});

}  // namespace dtrain::net
