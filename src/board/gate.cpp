#include "gate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <dtrain/base/secret.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/net/addresses.hpp>

namespace dtrain::board {
namespace {

constexpr std::size_t kTries = 10, kMostAddresses = 1024;
constexpr std::chrono::minutes kWhile(1);

std::string cookie_of(std::string_view header, const std::string& name) {
  for (const std::string& part : split(header, ';')) {
    const std::string_view word = trim(part);
    if (word.starts_with(name) && word.substr(name.size()).starts_with('=')) {
      return std::string(word.substr(name.size() + 1));
    }
  }
  return {};
}

// "localhost:6007" -> "localhost", "[::1]:6007" -> "[::1]"
std::string_view without_port(std::string_view host) {
  const std::size_t colon = host.rfind(':');
  const bool is_port = colon != host.npos && host.find(']', colon) == host.npos &&
                       host.find_first_not_of("0123456789", colon + 1) == host.npos;
  return is_port ? host.substr(0, colon) : host;
}

}  // namespace

bool Gate::knows(const std::string& word) const { return !word.empty() && equal_secrets(word, token_); }

std::string Gate::cookie_name() const { return fmt::format("dtrain_board_{}", port_); }

std::string Gate::cookie() const {
  return fmt::format("{}={}; Path=/; HttpOnly; SameSite=Strict", cookie_name(), token_);
}

// Without a token the address of the page is the only proof that no site of the web has the user's browser ask: such a
// site may let its own name lead to this machine.
bool Gate::is_own_host(std::string_view host) const {
  constexpr std::array<std::string_view, 3> kLocal = {"localhost", "127.0.0.1", "[::1]"};
  const std::string_view name = without_port(host);
  return std::ranges::find(kLocal, name) != kLocal.end() || name == net::in_brackets(address_);
}

bool Gate::open_with(const std::string& word) {
  if (was_opened_ || open_word_.empty() || !equal_secrets(word, open_word_)) return false;
  return was_opened_ = true;
}

// Only tokens in the address are counted. A page that was opened before the board started anew shows a wrong cookie
// many times a minute, and its user, or any other at the same address, must not keep out those who know the token: a
// text of its length cannot be guessed, with or without a limit.
Gate::Verdict Gate::judge(const net::HttpRequest& request, const Target& target, Time now) {
  const std::string_view origin = request.header("origin"), host = request.header("host");
  if (!origin.empty() && origin != fmt::format("http://{}", host)) return Verdict::stranger;
  if (token_.empty()) return is_own_host(host) ? Verdict::enter : Verdict::stranger;

  const std::string shown = target.text("token"), kept = cookie_of(request.header("cookie"), cookie_name());
  if (knows(shown)) return Verdict::remember;
  if (shown.empty()) return knows(kept) ? Verdict::enter : Verdict::refused;
  auto& wrong = wrong_[request.peer];
  while (!wrong.empty() && wrong.front() + kWhile < now) wrong.pop_front();
  if (wrong.size() >= kTries) return Verdict::exhausted;
  if (wrong_.size() > kMostAddresses) {  // of a crowd; each of them begins anew
    const std::deque<Time> mine = wrong;
    wrong_.clear();
    wrong_[request.peer] = mine;
  }
  wrong_[request.peer].push_back(now);
  return Verdict::refused;
}

}  // namespace dtrain::board
