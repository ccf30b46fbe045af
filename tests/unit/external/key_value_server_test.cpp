#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <thread>

#include <dtrain/base/files.hpp>

#include "key_value_server.hpp"

namespace dtrain::external {
namespace {

TEST(KeyValues, AreThereOnceTheyWereStored) {
  KeyValues values;
  EXPECT_EQ(values.answer({"GET", "/global/0", ""}).status, 404);
  EXPECT_EQ(values.answer({"PUT", "/global/0", std::string("a\0b", 3)}).status, 200);
  EXPECT_EQ(values.answer({"GET", "/global/0", ""}).body, std::string("a\0b", 3));
  EXPECT_EQ(values.answer({"GET", "/local/0", ""}).status, 404);
  EXPECT_EQ(values.answer({"DELETE", "/global/0", ""}).status, 200);
  EXPECT_EQ(values.answer({"GET", "/global/0", ""}).status, 404);
  EXPECT_EQ(values.answer({"POST", "/global/0", ""}).status, 405);
}

TEST(KeyValues, TakeNoMoreThanAJobNeeds) {
  KeyValues values;
  const std::string value(1 << 20, 'x');
  int status = 200, stored = 0;
  while (status == 200 && stored < 1000)
    status = values.answer({"PUT", "/k/" + std::to_string(stored++), value}).status;
  EXPECT_EQ(status, 413);
  EXPECT_GT(stored, 32);
}

TEST(KeyValues, CountPathsToo) {
  KeyValues values;
  const std::string path(8 << 10, 'p');
  int status = 200, stored = 0;
  while (status == 200 && stored < 100'000)
    status = values.answer({"PUT", "/" + path + std::to_string(stored++), ""}).status;
  EXPECT_EQ(status, 413);
  EXPECT_LE(static_cast<std::size_t>(stored) * path.size(), std::size_t{65} << 20);
}

TEST(KeyValues, GiveBackTheBytesOfWhatIsReplacedOrForgotten) {
  KeyValues values;
  const std::string value(1 << 20, 'x');
  for (int i = 0; i < 200; ++i) {
    EXPECT_EQ(values.answer({"PUT", "/a", value}).status, 200);
    EXPECT_EQ(values.answer({"PUT", "/b" + std::to_string(i), value}).status, 200);
    values.answer({"DELETE", "/b" + std::to_string(i), ""});
  }
}

class Client {
 public:
  explicit Client(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_port = htons(port);
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<sockaddr*>(&place), sizeof place), 0);
  }
  void send(std::string_view text) { ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL); }
  // What comes until it holds `wanted`, or the connection is closed.
  std::string read_until(std::string_view wanted) {
    std::string text;
    char chunk[4096];
    for (ssize_t got = 0;
         text.find(wanted) == text.npos && (got = ::recv(socket_.get(), chunk, sizeof chunk, 0)) > 0;) {
      text.append(chunk, static_cast<std::size_t>(got));
    }
    return text;
  }
  std::string read_all() { return read_until(std::string_view("\0never", 6)); }

 private:
  FileDescriptor socket_;
};

TEST(KeyValueServer, AnswersManyRequestsOnOneConnection) {
  KeyValueServer server("127.0.0.1", 2);
  const std::string base = "/" + server.secret() + ":1";
  Client client(server.port());
  client.send("PUT " + base + "/a/b HTTP/1.1\r\nHost: x\r\ncontent-le");
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // so that it comes in pieces
  client.send("ngth: 3\r\n\r\nabcGET " + base + "/a/b HTTP/1.1\r\n\r\nGET " + base + "/a/c HTTP/1.1\r\n\r\n");
  const std::string text = client.read_until("404 Not Found");
  EXPECT_TRUE(text.starts_with("HTTP/1.1 200 OK\r\n")) << text;
  EXPECT_NE(text.find("\r\n\r\nabcHTTP/1.1 404 Not Found"), text.npos) << text;
  Client other(server.port());
  other.send("GET " + base + "/a/b HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(other.read_until("\r\n\r\nabc").starts_with("HTTP/1.1 200 OK"));
}

TEST(KeyValueServer, AnswersNoPathWithoutItsSecret) {
  KeyValueServer server("127.0.0.1", 2);
  std::string wrong = server.secret();
  wrong.back() = wrong.back() == '0' ? '1' : '0';
  for (const std::string& path : {std::string("/a/b"), std::string("/"), "/" + wrong + "/a", server.secret() + "/a"}) {
    Client client(server.port());
    client.send("PUT " + path + " HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n");
    EXPECT_EQ(client.read_all(), "") << path;
  }
}

TEST(KeyValueServer, ClosesOnWhatIsNoRequest) {
  KeyValueServer server("127.0.0.1", 2);
  for (const std::string& text :
       {std::string("hello\r\n\r\n"), std::string("PUT /a HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n"),
        std::string("PUT /a HTTP/1.1\r\nContent-Length: -1\r\n\r\n"), std::string(2 << 20, 'x')}) {
    Client client(server.port());
    client.send(text);
    EXPECT_EQ(client.read_all(), "") << text.substr(0, 80);
  }
}

}  // namespace
}  // namespace dtrain::external
