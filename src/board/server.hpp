// The page's server: it watches, answers, and sends what changes to every page that is open.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace dtrain::board {

struct BoardOptions {
  std::vector<std::string> folders;   // runs, jobs, folders of them, prefixes of checkpoints, s3:// URLs
  std::string address = "127.0.0.1";  // numeric, to listen on
  std::uint16_t port = 6007;          // 0: any free one
  bool may_act = false;
  std::vector<std::string> clusters{};  // whose machines and cost are shown too
};

// A board that is reached from other machines, or may act, asks for a token.
bool needs_token(const BoardOptions& options);

class BoardServer {
 public:
  // Threads of its own serve from now on. `complain` is called from one of them. Throws Error when the port cannot be
  // bound; it names the board that has it.
  BoardServer(BoardOptions options, std::function<void(const std::string&)> complain);
  ~BoardServer();
  BoardServer(const BoardServer&) = delete;

  std::string url() const;  // with the token, for the user's browser
  // For the arguments of a browser on this machine, which all users of it can read: in place of the token a word that
  // opens the page once, and only for this user.
  std::string url_to_open() const;
  std::uint16_t port() const;
  std::size_t runs() const;  // found until now

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dtrain::board
