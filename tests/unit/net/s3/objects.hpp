// An ObjectStore over the S3 server of tests/net/s3_server.py, in parts that are small.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/net/objects.hpp>

#include "common/temporary_folder.hpp"
#include "common/test_server.hpp"
#include "s3/list.hpp"

namespace dtrain::net {

inline constexpr std::uint64_t kSmallPart = 64 << 10;

class Objects : public testing::Test {
 protected:
  Objects() {
    settings.environment = [this](const std::string& name) -> std::optional<std::string> {
      const auto found = variables.find(name);
      return found == variables.end() ? std::nullopt : std::optional(found->second);
    };
    settings.endpoint_url = server->url("");
    limits.part_size = kSmallPart;
    limits.tries.first_pause = std::chrono::milliseconds(1);
  }
  static void SetUpTestSuite() { server = std::make_unique<TestServer>("s3_server.py"); }
  static void TearDownTestSuite() { server.reset(); }

  // A URL of this test's own; the first word of its key says how the server misbehaves.
  static std::string url(const std::string& word, const std::string& bucket = "bucket") {
    return "s3://" + bucket + "/" + word + "/" + testing::UnitTest::GetInstance()->current_test_info()->name();
  }
  ObjectStore& store() {
    if (!store_) store_ = std::make_unique<ObjectStore>(settings, limits);
    return *store_;
  }
  std::string read(const std::string& where) {
    const ObjectState state = store().state(where);
    std::string content(state.size, '?');
    store().read(where, state, 0, std::as_writable_bytes(std::span(content)));
    return content;
  }
  // Without printing so many bytes.
  static void expect_same(const std::string& found, const std::string& wanted) {
    const auto differ = std::mismatch(found.begin(), found.end(), wanted.begin(), wanted.end());
    EXPECT_TRUE(found == wanted) << "they differ at byte " << differ.first - found.begin();
  }
  void expect_comes_through(const std::string& word) {
    const std::string content = server_content();
    store().put(url(word), bytes_of(content));
    expect_same(read(url(word)), content);
  }
  std::string error_of(const std::function<void()>& act) {
    try {
      act();
    } catch (const Error& error) {
      return std::string(error.what()) + " | " + error.hint();
    }
    ADD_FAILURE() << "nothing was thrown";
    return {};
  }
  std::vector<std::string> keys(const std::string& where) {
    std::vector<std::string> found;
    store().list(where, [&](const ObjectEntry& entry) { found.push_back(entry.key); });
    return found;
  }
  int gets(const std::string& word) {
    ObjectStore plain(settings, limits);
    const std::string counter = server->url("_count" + url(word).substr(4));
    const ObjectState state{.size = 1, .etag = "", .checksum = ""};
    std::byte digit{};
    plain.read(counter, state, 0, {&digit, 1});
    return static_cast<int>(digit) - '0';
  }
  std::uint64_t upload(const std::string& where, const std::string& content) {
    ObjectUpload upload(store(), where);
    upload.write(bytes_of(content));
    upload.finish();
    return upload.reused();
  }
  // What the server answers to another program.
  std::string ask(const std::string& method, const std::string& path, std::vector<HttpField> query,
                  std::vector<HttpField> headers = {}, const std::string& body = {}) {
    return AwsClient(kS3, settings)
        .call({.method = method,
               .endpoint = settings.endpoint_url.substr(0, settings.endpoint_url.size() - 1),
               .path = "/" + path,
               .query = std::move(query),
               .headers = std::move(headers),
               .body = bytes_of(body),
               .region = "us-east-1"})
        .body;
  }
  std::size_t fragments(const std::string& bucket) {
    return parse_uploads(ask("GET", bucket + "/", {{"uploads", ""}})).size();
  }

  static bool holds(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }
  // The same size and other bytes, in the middle.
  static std::string damaged(std::string content) {
    content[content.size() / 2] ^= 1;
    return content;
  }

  static inline std::unique_ptr<TestServer> server;
  std::map<std::string, std::string> variables{
      {"AWS_ACCESS_KEY_ID", "key"}, {"AWS_SECRET_ACCESS_KEY", "secret"}, {"AWS_REGION", "us-east-1"}};
  AwsSettings settings;
  ObjectLimits limits;
  TemporaryFolder folder;

 private:
  std::unique_ptr<ObjectStore> store_;
};

}  // namespace dtrain::net
