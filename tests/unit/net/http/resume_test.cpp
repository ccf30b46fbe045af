#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>
#include <dtrain/net/http.hpp>

#include "http_downloads.hpp"

namespace dtrain::net {
namespace {

class Resume : public HttpDownloads {};

TEST_F(Resume, ResumesAfterAnEarlyEnd) {
  get("truncate-once");
  expect_complete();
  EXPECT_EQ(count("truncate-once"), 2);
}

TEST_F(Resume, ResumesInALaterRun) {
  request.attempts = 1;
  error_of<RemoteError>("truncate-once");
  expect_only({"file.bin.part", "file.bin.part.from"});
  std::uint64_t lowest = content.size();
  request.progress = [&](std::uint64_t done, std::uint64_t) { lowest = std::min(lowest, done); };
  get("truncate-once");
  expect_complete();
  EXPECT_GE(lowest, content.size() / 2);
}

TEST_F(Resume, BeginsAnewWhenTheFileChangedMeanwhile) {
  get("change-midway");
  expect_complete();
}

TEST_F(Resume, BeginsAnewWhenTheRestIsOfAnotherVersion) {
  const std::string other(content.rbegin(), content.rend());
  for (const std::size_t size : {other.size() / 2, other.size()}) {
    std::ofstream(folder / "file.bin.part") << other.substr(0, size);
    std::ofstream(folder / "file.bin.part.from") << server->url(own("version-2-in-any-case")) << "\n\"v1\"\n";
    get("version-2-in-any-case");
    expect_complete();
    std::filesystem::remove(request.to);
  }
}

TEST_F(Resume, BeginsAnewWhenTheServerIgnoresTheRange) {
  get("lie-about-ranges");
  expect_complete();
}

TEST_F(Resume, BeginsAnewWhenTheBeginningIsOfAnotherUrl) {
  request.attempts = 1;
  error_of<RemoteError>("truncate-always/other");
  get("ok");
  expect_complete();
}

TEST_F(Resume, BeginsAnewWhenThePartialFileWasDamaged) {
  request.attempts = 1;
  request.sha256 = sha256_hex(bytes_of(content));
  error_of<RemoteError>("truncate-once");
  std::fstream(folder / "file.bin.part", std::ios::in | std::ios::out) << "damage";
  request.attempts = 4;
  get("truncate-once");
  expect_complete();
}

TEST_F(Resume, TakesAPartialFileThatIsWhole) {
  std::ofstream(folder / "file.bin.part") << content;
  std::ofstream(folder / "file.bin.part.from") << server->url(own("ok")) << "\n\"v1\"\n";
  get("ok");
  expect_complete();
}

TEST_F(Resume, BeginsAnewWhenTheServerDoesNotSayWhereTheRestBegins) {
  get("rest-of-unknown-position");
  expect_complete();
  EXPECT_EQ(count("rest-of-unknown-position"), 3);
}

TEST_F(Resume, ReplacesTheFileBehindALink) {
  std::ofstream(folder / "behind") << "old";
  std::filesystem::permissions(folder / "behind", std::filesystem::perms(0600));
  std::filesystem::create_symlink("behind", request.to);
  get("ok");
  EXPECT_TRUE(std::filesystem::is_symlink(request.to));
  EXPECT_EQ(read_file(folder / "behind"), content);
  EXPECT_EQ(std::filesystem::status(folder / "behind").permissions(), std::filesystem::perms(0600));
  expect_only({"behind", "file.bin"});
}

TEST_F(Resume, BeginsAFileUrlAnew) {
  std::filesystem::create_directory(folder / "from");
  std::ofstream(folder / "from/source") << content;
  request.url = "file://" + (folder / "from/source").string();
  std::ofstream(folder / "file.bin.part") << content.substr(0, content.size() / 2);
  std::ofstream(folder / "file.bin.part.from") << request.url << "\nMon, 01 Jan 2024 00:00:00 GMT\n";
  download(request);
  EXPECT_EQ(read_file(request.to), content);
}

}  // namespace
}  // namespace dtrain::net
