#include "server.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/base/files.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/base/machine.hpp>
#include <dtrain/net/http_exchange.hpp>

#include "export_page.hpp"
#include "page.hpp"

namespace dtrain::board {
namespace {

class BoardServerTest : public testing::Test {
 protected:
  BoardServerTest() {
    std::filesystem::create_directories(folder_ / "a-run");
    std::ofstream(folder_ / "a-run" / "steps.jsonl") << "{\"time\":\"2026-01-31T23:59:10Z\",\"begins\":true}\n"
                                                        "{\"time\":\"2026-01-31T23:59:11Z\",\"epoch\":0,\"step\":0,"
                                                        "\"steps\":10,\"samples\":8,\"seconds\":1,\"loss\":2}\n";
  }
  ~BoardServerTest() override { std::filesystem::remove_all(folder_); }
  BoardOptions options() const { return {.folders = {folder_.string()}, .port = 0}; }
  static net::HttpAnswer ask(const BoardServer& server, const std::string& path,
                             std::vector<std::string> headers = {}) {
    return net::exchange_http({.url = "http://127.0.0.1:" + std::to_string(server.port()) + path,
                               .headers = std::move(headers),
                               .deadline = std::chrono::seconds(60),
                               .direct = true});
  }
  const Path folder_ = std::filesystem::temp_directory_path() / ("board_server_" + std::to_string(::getpid()));
};

void complain(const std::string&) {}

TEST_F(BoardServerTest, ServesThePageAndTheRun) {
  const BoardServer server(options(), complain);
  EXPECT_NE(ask(server, "/").body.find("<main"), std::string::npos);
  Json rows;
  while (rows.is_null() || rows.as_array().empty() || rows.as_array()[0].at("lines").as_integer() == 0)
    rows = Json::parse(ask(server, "/api/board").body, "the board").at("rows");
  EXPECT_EQ(rows.as_array()[0].at("name").as_string(), "a");
  const std::string run = rows.as_array()[0].at("id").as_string();
  const Json series = Json::parse(ask(server, "/api/series?run=" + run).body, "the series");
  EXPECT_EQ(series.at("columns").at("loss").at("mean").as_array().at(0).as_number(), 2);
  const net::HttpAnswer gone = ask(server, "/api/series?run=none");
  EXPECT_EQ(gone.status, 404);
  EXPECT_NE(gone.body.find("this run is not there any more"), std::string::npos) << gone.body;
  EXPECT_EQ(gone.body.find("none"), std::string::npos) << "readers know no ids";
  EXPECT_EQ(ask(server, "/api/series?axis=x&run=" + run).status, 400);
}

TEST_F(BoardServerTest, ABoardThatMayActAsksForItsToken) {
  BoardOptions acting = options();
  acting.may_act = true;
  const BoardServer server(acting, complain);
  EXPECT_EQ(ask(server, "/").status, 401);
  EXPECT_EQ(ask(server, "/app.js").status, 401);
  const std::string token = server.url().substr(server.url().find("token=") + 6);
  EXPECT_EQ(token.size(), 32u);
  EXPECT_EQ(ask(server, "/?token=" + token).status, 303);
  EXPECT_EQ(ask(server, "/", {"Cookie: dtrain_board_" + std::to_string(server.port()) + "=" + token}).status, 200);
  EXPECT_EQ(ask(server, "/?open=guess").status, 401);
  const std::string to_open = server.url_to_open();
  EXPECT_EQ(to_open.find(token), to_open.npos) << "the arguments of the browser are for all to read";
  const std::string word = to_open.substr(to_open.find("open=") + 5);
  EXPECT_EQ(ask(server, "/?open=" + word).status, 303);
  EXPECT_EQ(ask(server, "/?open=" + word).status, 401) << "it opens the page twice";
  EXPECT_TRUE(needs_token({.folders = {}, .address = "0.0.0.0"}));
  EXPECT_FALSE(needs_token({.folders = {}, .address = "::1"}));
}

// The status that user nobody gets for this request; -1: none. Only root may ask as another user.
int status_for_nobody(std::uint16_t port, const std::string& head) {
  constexpr uid_t kNobody = 65534;
  int ends[2];
  if (::pipe(ends) != 0) return -1;
  const FileDescriptor answers(ends[0]);
  FileDescriptor child_answers(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    sockaddr_in there{};
    there.sin_family = AF_INET;
    there.sin_port = htons(port);
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    char beginning[12] = {};  // "HTTP/1.1 403"
    const bool asked = ::setuid(kNobody) == 0;
    const int call = ::socket(AF_INET, SOCK_STREAM, 0);
    if (!asked || ::connect(call, reinterpret_cast<const sockaddr*>(&there), sizeof there) != 0) ::_exit(1);
    const ssize_t sent = ::write(call, head.data(), head.size());
    const ssize_t got = ::recv(call, beginning, sizeof beginning, MSG_WAITALL);
    const ssize_t told = got > 0 ? ::write(child_answers.get(), beginning, static_cast<std::size_t>(got)) : 0;
    ::_exit(sent > 0 && told > 0 ? 0 : 1);
  }
  child_answers = FileDescriptor();
  char beginning[13] = {};
  const ssize_t got = ::read(answers.get(), beginning, sizeof beginning - 1);
  ::waitpid(child, nullptr, 0);
  return got == sizeof beginning - 1 ? std::atoi(beginning + 9) : -1;
}

TEST_F(BoardServerTest, OnThisMachineOtherUsersGetNothingAlsoWithTheToken) {
  if (::geteuid() != 0) GTEST_SKIP() << "SKIPPED LOUDLY: only root may ask as another user";
  BoardOptions acting = options();
  acting.may_act = true;
  const BoardServer server(acting, complain);
  const std::string token = server.url().substr(server.url().find("token=") + 6), port = std::to_string(server.port());
  const std::string end = " HTTP/1.1\r\nHost: localhost:" + port + "\r\n",
                    cookie = "Cookie: dtrain_board_" + port + "=" + token + "\r\n";
  EXPECT_EQ(status_for_nobody(server.port(), "GET /?token=" + token + end + "\r\n"), 403);
  EXPECT_EQ(status_for_nobody(server.port(), "GET /" + end + cookie + "\r\n"), 403);
  EXPECT_EQ(status_for_nobody(server.port(), "POST /api/action" + end + cookie + "Content-Length: 0\r\n\r\n"), 403);
  EXPECT_EQ(ask(server, "/", {cookie.substr(0, cookie.size() - 2)}).status, 200) << "its own user has the token";
  BoardOptions everywhere = acting;
  everywhere.address = "0.0.0.0";
  const BoardServer far(everywhere, complain);
  const std::string shared = far.url().substr(far.url().find("token=") + 6);
  EXPECT_EQ(status_for_nobody(far.port(), "GET /?token=" + shared + " HTTP/1.1\r\nHost: localhost\r\n\r\n"), 303)
      << "whoever has the token of a board that other machines reach may enter";
}

TEST_F(BoardServerTest, TheAddressThatIsPrintedWorks) {
  const auto printed = [&](const std::string& address) {
    BoardOptions elsewhere = options();
    elsewhere.address = address;
    const BoardServer server(elsewhere, complain);
    const net::HttpAnswer answer =
        net::exchange_http({.url = server.url(), .deadline = std::chrono::seconds(60), .direct = true});
    EXPECT_EQ(answer.status, 200) << server.url();
    return server.url();
  };
  EXPECT_TRUE(printed("127.0.0.1").starts_with("http://localhost:"));
  EXPECT_TRUE(printed("127.0.0.2").starts_with("http://127.0.0.2:"));
}

TEST_F(BoardServerTest, AllAddressesAreCalledByTheNameOfTheMachine) {
  BoardOptions everywhere = options();
  for (const char* const address : {"0.0.0.0", "::"}) {
    everywhere.address = address;
    try {
      EXPECT_TRUE(BoardServer(everywhere, complain).url().starts_with("http://" + host_name() + ":"));
    } catch (const Error&) {
      EXPECT_STREQ(address, "::") << "only IPv6 may be missing here";
    }
  }
}

TEST_F(BoardServerTest, TheSecondBoardOfAPortNamesTheFirst) {
  const BoardServer first(options(), complain);
  BoardOptions same = options();
  same.port = first.port();
  try {
    const BoardServer second(same, complain);
    FAIL() << "both listen";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("process " + std::to_string(::getpid())), std::string::npos)
        << error.what();
  }
}

TEST(BoardPage, IsWholeAndSmall) {
  std::size_t size = 0;
  for (const PageFile& file : page_files()) {
    size += file.text.size();
    EXPECT_EQ(file.text.find("http://"), file.text.find("http://www.w3.org/2000/svg"))
        << file.name << ": no other host";
    EXPECT_EQ(file.text.find("innerHTML"), std::string_view::npos) << file.name << ": text stays text";
  }
  EXPECT_GT(size, 20'000u);
  EXPECT_LT(size, 200'000u);
  const std::string script = joined_modules();
  EXPECT_EQ(script.find("\nimport "), std::string::npos);
  EXPECT_EQ(script.find("\nexport "), std::string::npos);
  EXPECT_NE(script.find("class RunsPage"), std::string::npos);
}

}  // namespace
}  // namespace dtrain::board
