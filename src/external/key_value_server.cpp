#include "key_value_server.hpp"

namespace dtrain::external {
namespace {

// Far more than a thousand ranks store, and little enough that an unknown client cannot fill the memory.
constexpr std::size_t kLongestBody = 1 << 20, kMostBytes = 64 << 20, kMostConnections = 4096;
constexpr std::chrono::seconds kSendDeadline{5};  // for a client that does not read

}  // namespace

net::HttpResponse KeyValues::answer(const net::HttpRequest& request) {
  const auto found = values_.find(request.path);
  if (request.method == "GET") {
    return found == values_.end() ? net::HttpResponse{.status = 404} : net::HttpResponse{.body = found->second};
  }
  if (request.method == "DELETE") {
    if (found == values_.end()) return {};
    bytes_ -= found->second.size();
    values_.erase(found);
    return {};
  }
  if (request.method != "PUT") return {.status = 405};
  if (bytes_ + request.body.size() + request.path.size() > kMostBytes) return {.status = 413};
  std::string& value = values_[request.path];
  bytes_ += request.body.size() - value.size();
  value = request.body;
  return {};
}

KeyValueServer::KeyValueServer(const std::string& address)
    : server_(loop_.loop(), address, 0, [this](const net::HttpRequest& request) { return values_.answer(request); },
              {.most_body = kLongestBody,
               .most_connections = kMostConnections,
               .keep_alive = true,
               .read_deadline = std::chrono::seconds(0),
               .write_deadline = kSendDeadline}) {}

}  // namespace dtrain::external
