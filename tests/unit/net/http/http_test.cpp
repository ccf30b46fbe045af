#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <thread>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>
#include <dtrain/net/http.hpp>
#include <dtrain/net/http_exchange.hpp>

#include "common/set_variable.hpp"
#include "common/test_server.hpp"
#include "http_downloads.hpp"

namespace dtrain::net {
namespace {

class Http : public HttpDownloads {};

TEST_F(Http, FetchesAFileAndShowsProgress) {
  std::uint64_t last = 0, total = 0;
  request.progress = [&](std::uint64_t done, std::uint64_t of) { last = done, total = of; };
  request.size = content.size();
  request.sha256 = sha256_hex(bytes_of(content));
  get("ok");
  expect_complete();
  EXPECT_EQ(last, content.size());
  EXPECT_EQ(total, content.size());
}

TEST_F(Http, KeepsAFileThatIsAlreadyRight) {
  request.sha256 = sha256_hex(bytes_of(content));
  get("ok");
  get("ok");
  EXPECT_EQ(count("ok"), 1);
}

TEST_F(Http, ReplacesAFileThatIsWrong) {
  std::ofstream(request.to) << "other";
  request.size = content.size();
  get("ok");
  expect_complete();
}

TEST_F(Http, TriesAgainWhenTheServerIsBusy) {
  get("busy-once");
  expect_complete();
}

TEST_F(Http, TriesAgainWhenNothingComes) {
  request.stall_timeout = std::chrono::seconds(1);
  get("stall-once");
  expect_complete();
}

TEST_F(Http, FollowsRedirects) {
  get("redirect");
  expect_complete();
}

TEST_F(Http, LeadsFromHttpsToHttpOnlyWhereAHashIsKnown) {
  const std::string certificate = folder / "certificate";
  const SetVariable made("TEST_CERTIFICATE", certificate), trusted("AWS_CA_BUNDLE", certificate);
  const TestServer encrypted("https_server.py");
  const std::string secure = "https" + encrypted.url("").substr(4), plain = server->url(own("ok"));
  request.url = secure + "to/" + plain;
  try {
    download(request);
    ADD_FAILURE() << "it followed a redirect to http";
  } catch (const RemoteError& error) {
    EXPECT_TRUE(holds(error.what(), "without encryption")) << error.what();
  }
  request.url = secure + "to/" + secure + "ok";
  download(request);
  EXPECT_EQ(read_file(request.to), "safe");
  request.url = secure + "to/" + plain;
  request.sha256 = sha256_hex(bytes_of(content));
  download(request);
  EXPECT_EQ(read_file(request.to), content);
}

TEST_F(Http, PassesOverEmptyVariablesOfTrustAndNamesThemWhenItTrustsNobody) {
  const std::string certificate = folder / "certificate";
  const SetVariable made("TEST_CERTIFICATE", certificate), aws("AWS_CA_BUNDLE", ""), curl("CURL_CA_BUNDLE", "");
  const TestServer encrypted("https_server.py");
  request.url = "https" + encrypted.url("ok").substr(4);
  {
    const SetVariable trusted("SSL_CERT_FILE", certificate);
    download(request);
    EXPECT_EQ(read_file(request.to), "safe");
  }
  std::filesystem::remove(request.to);
  const SetVariable nobody("SSL_CERT_FILE", folder / "none");
  try {
    download(request);
    ADD_FAILURE() << "it trusted the server";
  } catch (const RemoteError& error) {
    EXPECT_TRUE(holds(error.hint(), "SSL_CERT_FILE")) << error.hint();
    EXPECT_FALSE(holds(error.hint(), "profile")) << error.hint();
  }
}

TEST_F(Http, AsksThroughTheProxyUnlessTheCallIsDirect) {
  const SetVariable proxy("http_proxy", server->url("")), all("no_proxy", ""), capital("NO_PROXY", "");
  const std::string url = "http://somewhere.invalid/x";
  EXPECT_EQ(exchange_http({.url = url}).status, 404);  // the test server's word
  EXPECT_THROW((void)exchange_http({.url = url, .direct = true}), RemoteError);
}

TEST(ShownUrl, HoldsNoSecrets) {
  EXPECT_EQ(shown_url("https://user:pw@example.org:1/a/b@c?X-Amz-Signature=s#f"), "https://example.org:1/a/b@c");
  EXPECT_EQ(shown_url("http://example.org?token=s"), "http://example.org");
  EXPECT_EQ(shown_url("s3://bucket/is it?@#"), "s3://bucket/is it?@#");
  EXPECT_EQ(shown_url("file:///is it?"), "file:///is it?");
  EXPECT_EQ(shown_url("d/is it?"), "d/is it?");
}

TEST(StoredUrl, TellsOthersApartWithoutSecrets) {
  const std::string stored = stored_url("https://user:pw@example.org/a?X-Amz-Signature=s");
  EXPECT_TRUE(stored.starts_with("https://example.org/a ")) << stored;
  EXPECT_FALSE(holds(stored, "Signature") || holds(stored, "pw")) << stored;
  EXPECT_EQ(stored, stored_url("https://example.org/a?X-Amz-Signature=s"));
  EXPECT_NE(stored, stored_url("https://example.org/a?X-Amz-Signature=other"));
  for (const char* plain : {"https://example.org/a", "s3://bucket/is it?@#", "file:///is it?"})
    EXPECT_EQ(stored_url(plain), plain);
}

TEST_F(Http, LeavesNoSecretsOfTheUrlOnDisk) {
  request.attempts = 1;
  request.url = server->url(own("truncate-once") + "?X-Amz-Signature=secret");
  EXPECT_THROW(download(request), RemoteError);
  const std::string from = read_file(folder / "file.bin.part.from");
  EXPECT_FALSE(holds(from, "secret")) << from;
  std::uint64_t lowest = content.size();
  request.progress = [&](std::uint64_t done, std::uint64_t) { lowest = std::min(lowest, done); };
  download(request);
  expect_complete();
  EXPECT_GE(lowest, content.size() / 2) << "it was not resumed";
}

TEST_F(Http, ShowsNoSecretsOfTheUrlInAnError) {
  request.url = "http://user:pw@127.0.0.1:1/file?X-Amz-Signature=secret";
  request.attempts = 1;
  try {
    download(request);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const RemoteError& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("http://127.0.0.1:1/file: ")) << error.what();
  }
}

TEST_F(Http, WritesThroughNoLinkThatStandsWhereItsPartialFileBelongs) {
  std::filesystem::create_symlink(folder / "elsewhere", folder / "file.bin.part");
  EXPECT_TRUE(holds(error_of<Error>("ok"), "file.bin.part"));
  EXPECT_FALSE(std::filesystem::exists(folder / "elsewhere"));
}

TEST_F(Http, FetchesAnEmptyFile) {
  get("empty");
  EXPECT_EQ(std::filesystem::file_size(request.to), 0u);
}

TEST_F(Http, NamesAnEarlyEndAndHowOftenItTried) {
  request.attempts = 3;
  request.sha256 = std::string(64, '0');
  const std::string error = error_of<RemoteError>("truncate-always");
  EXPECT_TRUE(holds(error, "/truncate-always/")) << error;
  EXPECT_TRUE(holds(error, "(3 tries)")) << error;
  EXPECT_TRUE(holds(error, "are kept: run the same command again")) << error;
}

TEST_F(Http, DoesNotRepeatWhatIsMissing) {
  const std::string error = error_of<RemoteError>("nothing-here");
  EXPECT_TRUE(holds(error, "404")) << error;
  EXPECT_EQ(count("nothing-here"), 1);
  expect_only({});
}

TEST_F(Http, GivesUpOnAServerThatStaysBusy) {
  const std::string error = error_of<RemoteError>("busy");
  EXPECT_TRUE(holds(error, "503")) << error;
  EXPECT_EQ(count("busy"), 4);
  expect_only({});
}

TEST_F(Http, NamesAnHtmlPageInPlaceOfTheFile) {
  for (const char* path : {"html", "html-type"}) {
    const std::string error = error_of<RemoteError>(path);
    EXPECT_TRUE(holds(error, "the server sent an HTML page in place of the file")) << error;
    EXPECT_EQ(count(path), 1);
    expect_only({});
  }
}

TEST_F(Http, NamesAWrongHashAndLeavesNothing) {
  request.sha256 = std::string(64, 'a');
  const std::string error = error_of<DataError>("ok");
  EXPECT_TRUE(holds(error, "its SHA-256 is " + sha256_hex(bytes_of(content)))) << error;
  expect_only({});
}

TEST_F(Http, NamesAWrongSizeAndLeavesNothing) {
  request.size = 99'999;
  const std::string error = error_of<DataError>("ok");
  EXPECT_TRUE(holds(error, "100000 bytes came, 99999 were expected")) << error;
  expect_only({});
}

TEST_F(Http, TakesNoMoreThanTheFileHas) {
  request.size = 10;
  std::uint64_t most = 0;
  request.progress = [&](std::uint64_t done, std::uint64_t) { most = std::max(most, done); };
  const std::string error = error_of<DataError>("ok");
  EXPECT_TRUE(holds(error, "bytes came, 10 were expected")) << error;
  EXPECT_LT(most, content.size());
  expect_only({});
}

// Each of them must leave the whole file, or say that another one downloads it.
TEST_F(Http, ManyDownloadsOfOneFileDoNotDisturbEachOther) {
  request.url = server->url(own("ok"));
  std::atomic<int> complete = 0;
  std::vector<std::jthread> processes;
  for (int i = 0; i < 4; ++i) {
    processes.emplace_back([&] {
      for (int j = 0; j < 25; ++j) {
        try {
          download(request);
          ++complete;
        } catch (const Error& error) {
          EXPECT_TRUE(holds(error.what(), "another process is downloading it")) << error.what();
        }
      }
    });
  }
  processes.clear();
  EXPECT_GT(complete, 0);
  download(request);
  expect_complete();
}

TEST_F(Http, NamesAHostThatIsNotThere) {
  request.url = "http://127.0.0.1:1/file";
  EXPECT_THROW(download(request), RemoteError);
  expect_only({});
}

TEST_F(Http, RefusesOtherProtocols) {
  request.url = "ftp://127.0.0.1/file";
  EXPECT_THROW(download(request), RemoteError);
}

TEST_F(Http, ReadsFileUrls) {
  std::ofstream(folder / "source") << content;
  request.url = "file://" + (folder / "source").string();
  download(request);
  EXPECT_EQ(read_file(request.to), content);
  request.url += "-missing";
  request.to = folder / "other";
  EXPECT_THROW(download(request), RemoteError);
}

TEST_F(Http, RefusesToWriteWhatAnotherWrites) {
  request.progress = [&](std::uint64_t done, std::uint64_t) {
    if (done == 0) return;
    Download second = request;
    second.progress = {};
    EXPECT_THROW(download(second), Error);
  };
  get("ok");
  expect_complete();
}

}  // namespace
}  // namespace dtrain::net
