// Signs requests that come as JSON lines on stdin, one Authorization header a line on stdout: tests/s3 compares them
// with botocore's.
#include <iostream>
#include <string>

#include <dtrain/base/json.hpp>

#include "net/aws/sigv4.hpp"

namespace {

std::vector<dtrain::net::HttpField> fields(const dtrain::Json& list) {
  std::vector<dtrain::net::HttpField> found;
  for (const dtrain::Json& pair : list.as_array()) {
    found.emplace_back(pair.as_array().at(0).as_string(), pair.as_array().at(1).as_string());
  }
  return found;
}

std::string sign(const dtrain::Json& line) {
  using namespace dtrain::net;
  const auto text = [&](const char* key) { return line.at(key).as_string(); };
  const RequestToSign request{.method = text("method"),
                              .path = canonical_path(encode_path(text("path")), text("service") == "s3"),
                              .query = encode_query(fields(line.at("query"))),
                              .headers = fields(line.at("headers")),
                              .payload_hash = text("payload_hash")};
  return authorization(request,
                       {text("access_key"), text("secret_key"), text("time"), text("region"), text("service")});
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);)
    std::cout << sign(dtrain::Json::parse(line, "stdin")) << std::endl;
}
