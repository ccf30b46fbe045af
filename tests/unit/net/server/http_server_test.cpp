#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/net/http_exchange.hpp>
#include <dtrain/net/http_server.hpp>

#include "net/running_port.hpp"
#include "server/http_heads.hpp"
#include "server/sockets.hpp"

namespace dtrain::net {
namespace {

// A server that sends one file and echoes what it gets.
class HttpServerTest : public testing::Test {
 protected:
  HttpServerTest() : file_(std::filesystem::temp_directory_path() / ("http_door_" + std::to_string(::getpid()))) {
    write_file_atomic(file_, std::string(700'000, 'x') + "end");
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~HttpServerTest() override {
    loop_.stop();
    thread_.join();
    std::filesystem::remove(file_);
  }

  HttpResponse answer(const HttpRequest& request) {
    if (request.path == "/file") return {.file = file_};
    if (request.path == "/gone") return {.file = "/nowhere"};
    if (request.path == "/header") return {.body = std::string(request.header("x-word")), .headers = {{"X-Own", "1"}}};
    if (request.path == "/later") {
      return {.later = [this](HttpResponse::Reply send) {
        answering_.emplace_back([send = std::move(send)] { send({.body = "done"}); });
      }};
    }
    if (request.path == "/stream") {
      return {.type = "text/event-stream", .stream = [this](std::shared_ptr<HttpStream> stream) {
                stream->send("data: one\n\n");
                streams_.put(std::move(stream));
              }};
    }
    if (request.path == "/no") return {.status = 403, .body = "not you"};
    return {.body = request.method + " " + request.peer + " " + request.body};
  }

  HttpAnswer ask(const std::string& path, const std::string& method = "GET", const std::string& body = "") {
    return exchange_http({.url = "http://127.0.0.1:" + std::to_string(server_.port()) + path,
                          .method = method,
                          .deadline = std::chrono::seconds(60),
                          .body = body,
                          .direct = true});
  }

  Path file_;
  Mailbox<std::shared_ptr<HttpStream>> streams_;
  Loop loop_;
  HttpServer server_{loop_, "127.0.0.1", 0, [this](const HttpRequest& request) { return answer(request); }};
  std::vector<std::jthread> answering_;
  std::thread thread_;
};

TEST_F(HttpServerTest, GivesAFileAway) {
  const HttpAnswer got = ask("/file");
  EXPECT_EQ(got.status, 200);
  EXPECT_EQ(got.body, read_file(file_));
  EXPECT_EQ(ask("/gone").status, 404);
}

TEST_F(HttpServerTest, TakesAMessageAndSaysNo) {
  EXPECT_EQ(ask("/", "POST", "words").body, "POST 127.0.0.1 words");
  EXPECT_EQ(ask("/no").status, 403);
  EXPECT_EQ(ask("/no").body, "not you");
}

TEST_F(HttpServerTest, HeadersReachTheAnswerAndTheClient) {
  EXPECT_EQ(exchange_http({.url = "http://127.0.0.1:" + std::to_string(server_.port()) + "/header",
                           .headers = {"X-Word: hello "},
                           .deadline = std::chrono::seconds(60),
                           .direct = true})
                .body,
            "hello");
  const FileDescriptor client = connect_to("127.0.0.1", server_.port(), std::chrono::seconds(10));
  write_raw(client, "GET /header HTTP/1.1\r\n\r\n");
  EXPECT_NE(read_raw(client).find("\r\nX-Own: 1\r\n"), std::string::npos);
}

TEST_F(HttpServerTest, AnAnswerMayComeLaterFromAnotherThread) { EXPECT_EQ(ask("/later").body, "done"); }

TEST_F(HttpServerTest, AStreamGoesOnUntilItsClientLeaves) {
  FileDescriptor client = connect_to("127.0.0.1", server_.port(), std::chrono::seconds(10));
  write_raw(client, "GET /stream HTTP/1.1\r\n\r\n");
  const auto stream = streams_.take();
  stream->send("data: two\n\n");
  std::string seen;
  char piece[256];
  while (seen.find("two\n\n") == seen.npos) {
    pollfd entry{client.get(), POLLIN, 0};
    ASSERT_GT(::poll(&entry, 1, 60'000), 0) << seen;
    const ssize_t got = ::recv(client.get(), piece, sizeof(piece), 0);
    ASSERT_GT(got, 0) << seen;
    seen.append(piece, static_cast<std::size_t>(got));
  }
  EXPECT_EQ(seen.find("Content-Length"), std::string::npos);
  EXPECT_NE(seen.find("\r\n\r\ndata: one\n\ndata: two\n\n"), std::string::npos) << seen;
  client = {};
  while (stream->is_open()) std::this_thread::yield();
  stream->send("too late");
}

TEST_F(HttpServerTest, ARequestKnowsItsConnection) {
  HttpServer keeping(
      loop_, "127.0.0.1", 0,
      [](const HttpRequest& request) { return HttpResponse{.body = fmt::format("[{}]", request.connection)}; },
      {.keep_alive = true});
  for (const char* const number : {"[1]", "[2]"}) {
    const FileDescriptor client = connect_to("127.0.0.1", keeping.port(), std::chrono::seconds(10));
    write_raw(client, "GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n");
    ::shutdown(client.get(), SHUT_WR);
    const std::string seen = read_raw(client);
    EXPECT_NE(seen.find(number), seen.npos) << seen;
    EXPECT_NE(seen.find(number), seen.rfind(number)) << "both requests came this way: " << seen;
  }
}

TEST_F(HttpServerTest, ARefusalEndsTheConnection) {
  HttpServer keeping(loop_, "127.0.0.1", 0,
                     [](const HttpRequest& request) {
                       return HttpResponse{.status = request.path == "/no" ? 401 : 200,
                                           .last = request.path == "/last"};
                     },
                     {.keep_alive = true});
  for (const char* const path : {"/no", "/last"}) {
    const FileDescriptor client = connect_to("127.0.0.1", keeping.port(), std::chrono::seconds(10));
    write_raw(client, fmt::format("GET /a HTTP/1.1\r\n\r\nGET {} HTTP/1.1\r\n\r\n", path));
    const std::string seen = read_raw(client);
    EXPECT_NE(seen.find("Connection: keep-alive"), seen.npos) << seen;
    EXPECT_NE(seen.find("Connection: close"), seen.npos) << seen;
  }
}

TEST_F(HttpServerTest, HeadHasNoBodyAndTheConnectionStays) {
  HttpServer keeping(loop_, "127.0.0.1", 0, [this](const HttpRequest& request) { return answer(request); },
                     {.keep_alive = true});
  const FileDescriptor client = connect_to("127.0.0.1", keeping.port(), std::chrono::seconds(10));
  write_raw(client, "HEAD /file HTTP/1.1\r\n\r\nHEAD /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\nConnection: close\r\n\r\n");
  const std::string seen = read_raw(client);
  EXPECT_NE(seen.find("Content-Length: 700003\r\n\r\nHTTP/1.1 200 OK\r\n"), seen.npos) << seen.substr(0, 1000);
  EXPECT_EQ(seen.find("HEAD 127.0.0.1"), seen.npos);
  EXPECT_NE(seen.find("GET 127.0.0.1"), seen.npos);
}

TEST_F(HttpServerTest, AClientMayWantTheConnectionClosed) {
  HttpServer keeping(loop_, "127.0.0.1", 0, [this](const HttpRequest& request) { return answer(request); },
                     {.keep_alive = true});
  for (const char* const request : {"GET / HTTP/1.1\r\nConnection: upgrade, Close\r\n\r\n", "GET / HTTP/1.0\r\n\r\n"}) {
    const FileDescriptor client = connect_to("127.0.0.1", keeping.port(), std::chrono::seconds(10));
    write_raw(client, request);
    EXPECT_NE(read_raw(client).find("Connection: close\r\n"), std::string::npos) << request;
  }
  EXPECT_TRUE(parse_request_head("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 0)->stays);
}

TEST_F(HttpServerTest, ASlowClientGetsALongBodyPieceByPiece) {
  const std::string body(24 << 20, 'x');
  HttpServer patient(loop_, "127.0.0.1", 0, [&](const HttpRequest&) { return HttpResponse{.body = body}; },
                     {.write_deadline = std::chrono::seconds(2)});
  const FileDescriptor client = connect_to("127.0.0.1", patient.port(), std::chrono::seconds(10));
  const int small = 64 << 10;
  ::setsockopt(client.get(), SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
  write_raw(client, "GET / HTTP/1.1\r\n\r\n");
  std::size_t got = 0;
  std::vector<char> piece(64 << 10);
  const auto slow_until = std::chrono::steady_clock::now() + std::chrono::milliseconds(2500);
  for (;;) {
    pollfd entry{client.get(), POLLIN, 0};
    ASSERT_GT(::poll(&entry, 1, 60'000), 0);
    const ssize_t count = ::recv(client.get(), piece.data(), piece.size(), 0);
    if (count <= 0) break;
    got += static_cast<std::size_t>(count);
    if (std::chrono::steady_clock::now() < slow_until) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_GT(got, body.size());
}

TEST_F(HttpServerTest, StrangersThatAreRefusedDoNotKeepOthersOut) {
  HttpServer narrow(loop_, "127.0.0.1", 0,
                    [](const HttpRequest& request) {
                      return request.path == "/" ? HttpResponse{.body = "served"} : HttpResponse{.status = 401};
                    },
                    {.most_of_address = 4, .keep_alive = true, .read_deadline = std::chrono::seconds(0)});
  std::vector<FileDescriptor> strangers;
  for (int i = 0; i < 4; ++i) {
    strangers.push_back(connect_to("127.0.0.1", narrow.port(), std::chrono::seconds(10)));
    write_raw(strangers.back(), "GET /no HTTP/1.1\r\n\r\n");
  }
  for (const FileDescriptor& stranger : strangers) {
    pollfd entry{stranger.get(), POLLIN, 0};
    ASSERT_GT(::poll(&entry, 1, 60'000), 0);
  }
  const std::string url = "http://127.0.0.1:" + std::to_string(narrow.port()) + "/";
  EXPECT_EQ(exchange_http({.url = url, .deadline = std::chrono::seconds(60), .direct = true}).body, "served");
}

TEST_F(HttpServerTest, ClosesOnWhoSaysTooMuch) {
  EXPECT_THROW(ask("/", "POST", std::string(100'000, 'x')), RemoteError);
  EXPECT_EQ(ask("/", "POST", "still there").status, 200);
}

TEST_F(HttpServerTest, ClosesOnAHeadWithoutEnd) {
  const FileDescriptor stranger = connect_to("127.0.0.1", server_.port(), std::chrono::seconds(10));
  write_raw(stranger, std::string(1 << 20, 'x'));
  EXPECT_EQ(read_raw(stranger), "");
}

TEST_F(HttpServerTest, IsNotFilledUpByStrangersThatSendNoRequest) {
  HttpServer narrow(loop_, "127.0.0.1", 0, [](const HttpRequest&) { return HttpResponse{.body = "served"}; },
                    {.most_connections = 4, .read_deadline = std::chrono::seconds(0)});
  std::vector<FileDescriptor> strangers;
  for (int i = 0; i < 50; ++i) {
    strangers.push_back(connect_to("127.0.0.1", narrow.port(), std::chrono::seconds(10)));
    const std::string_view begin = i % 2 == 0 ? "" : "GET /fi";
    EXPECT_EQ(::send(strangers.back().get(), begin.data(), begin.size(), MSG_NOSIGNAL), std::ssize(begin));
  }
  const std::string url = "http://127.0.0.1:" + std::to_string(narrow.port());
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(exchange_http({.url = url, .deadline = std::chrono::seconds(60), .direct = true}).body, "served");
  }
}

}  // namespace
}  // namespace dtrain::net
