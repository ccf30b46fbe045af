#include "key_value_server.hpp"

#include <fmt/format.h>

#include <dtrain/base/secret.hpp>

namespace dtrain::external {
namespace {

// Far more than a thousand ranks store, and little enough to fit into any host's memory.
constexpr std::size_t kLongestBody = 1 << 20, kMostBytes = 64 << 20;
constexpr std::size_t kEntryBytes = 256;  // of the map itself, for each value
// A rank has one connection at a time for each of Horovod's three communicators.
constexpr std::size_t kConnectionsOfARank = 4, kMoreConnections = 64;
constexpr std::chrono::seconds kReadDeadline{30};
constexpr std::chrono::seconds kSendDeadline{5};  // for a client that does not read
constexpr std::size_t kSecretBytes = 16;

std::size_t size_of_entry(const std::string& path, const std::string& value) {
  return path.size() + value.size() + kEntryBytes;
}

}  // namespace

net::HttpResponse KeyValues::answer(const net::HttpRequest& request) {
  const auto found = values_.find(request.path);
  if (request.method == "GET") {
    return found == values_.end() ? net::HttpResponse{.status = 404} : net::HttpResponse{.body = found->second};
  }
  if (request.method == "DELETE") {
    if (found == values_.end()) return {};
    bytes_ -= size_of_entry(found->first, found->second);
    values_.erase(found);
    return {};
  }
  if (request.method != "PUT") return {.status = 405};
  const std::size_t old = found == values_.end() ? 0 : size_of_entry(found->first, found->second);
  const std::size_t bytes = bytes_ - old + size_of_entry(request.path, request.body);
  if (bytes > kMostBytes) return {.status = 413};
  bytes_ = bytes;
  values_.insert_or_assign(request.path, request.body);
  return {};
}

KeyValueServer::KeyValueServer(const std::string& address, int ranks)
    : secret_(to_hex(unpredictable_bytes(kSecretBytes))),
      server_(loop_.loop(), address, 0, [this](const net::HttpRequest& request) { return values_.answer(request); },
              {.most_body = kLongestBody,
               .most_connections = kConnectionsOfARank * static_cast<std::size_t>(ranks) + kMoreConnections,
               .keep_alive = true,
               .read_deadline = kReadDeadline,
               .write_deadline = kSendDeadline,
               .path_secret = secret_}) {}

}  // namespace dtrain::external
