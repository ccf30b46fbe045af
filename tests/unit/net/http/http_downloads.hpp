// Downloads from the test server into a folder of the test's own.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/net/http.hpp>

#include "common/temporary_folder.hpp"
#include "common/test_server.hpp"

namespace dtrain::net {

class HttpDownloads : public testing::Test {
 protected:
  HttpDownloads() {
    request.to = folder / "file.bin";
    request.first_pause = std::chrono::milliseconds(1);
  }

  void get(std::string_view path) {
    request.url = server->url(own(path));
    download(request);
  }
  void expect_complete() {
    EXPECT_EQ(read_file(request.to), content);
    expect_only({"file.bin"});
  }
  void expect_only(std::vector<std::string> names) {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
      found.push_back(entry.path().filename());
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, names);
  }
  int count(std::string_view path) {
    Download counter;
    counter.url = server->url("count/" + own(path));
    counter.to = folder / "count";
    download(counter);
    const int times = std::stoi(read_file(counter.to));
    std::filesystem::remove(counter.to);
    return times;
  }
  // What `get` throws as an E, message and hint.
  template <typename E>
  std::string error_of(std::string_view path) {
    try {
      get(path);
    } catch (const E& error) {
      return std::string(error.what()) + " | " + error.hint();
    }
    ADD_FAILURE() << "nothing was thrown";
    return {};
  }

  // The path with the test's name behind it: the server counts and misbehaves per path.
  static std::string own(std::string_view path) {
    return std::string(path) + "/" + testing::UnitTest::GetInstance()->current_test_info()->name();
  }
  static void SetUpTestSuite() { server = std::make_unique<TestServer>(); }
  static void TearDownTestSuite() { server.reset(); }

  static inline std::unique_ptr<TestServer> server;
  TemporaryFolder folder;
  Download request;
  const std::string content = server_content();
};

inline bool holds(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

}  // namespace dtrain::net
