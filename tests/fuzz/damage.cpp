#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>

#include "fuzz.hpp"

namespace dtrain::fuzz {
namespace {

constexpr std::array<std::uint64_t, 10> kExtremes = {
    0, 1, 0x7f, 0xff, 0x7fffffff, 0x80000000, 0xffffffff, 0x7fffffffffffffff, 1ull << 63, ~0ull};
constexpr std::string_view kWords[] = {"-1", "1e999", "99999999999999999999", "null", "[]", "{", "\"", "\xff",
                                       "\n", "0.5"};

std::size_t place(const std::string& input, RandomStream& random) {
  return random.below(static_cast<std::uint32_t>(input.size()));
}

void overwrite_number(std::string& input, RandomStream& random) {
  const std::size_t at = place(input, random);
  const std::uint64_t value = kExtremes[random.below(kExtremes.size())];
  const std::size_t width = std::min<std::size_t>(std::size_t{1} << random.below(4), input.size() - at);
  std::memcpy(input.data() + at, &value, width);
}

void copy_piece(std::string& input, RandomStream& random) {
  const std::string piece = input.substr(place(input, random), 1 + random.below(32));
  input.insert(place(input, random), piece);
}

}  // namespace

std::string damage(std::string input, RandomStream& random) {
  for (std::uint32_t mistakes = 1 + random.below(4); mistakes > 0 && !input.empty(); --mistakes) {
    switch (random.below(7)) {
      case 0:
        input[place(input, random)] ^= static_cast<char>(1u << random.below(8));
        break;
      case 1:
        input[place(input, random)] = static_cast<char>(random.below(256));
        break;
      case 2:
        overwrite_number(input, random);
        break;
      case 3:
        input.resize(place(input, random));
        break;
      case 4:
        input.erase(place(input, random), 1 + random.below(16));
        break;
      case 5:
        copy_piece(input, random);
        break;
      default:
        input.insert(place(input, random), kWords[random.below(std::size(kWords))]);
        break;
    }
  }
  return input;
}

void write_quickly(const Path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
}

}  // namespace dtrain::fuzz
