// Text from elsewhere on a terminal: logs and messages of other machines, tags, file names. A terminal obeys control
// sequences in what it shows, so they are made visible instead.
#pragma once

#include <string>
#include <string_view>

namespace dtrain::cli {

// Control characters as "^[" and "\x9b". Line ends, tabs and colours ("\x1b[1;31m") stay.
std::string printable(std::string_view text);
// Every control character, also line ends, tabs and colours: for a name inside a table.
std::string printable_word(std::string_view text);
// The first letters of text in UTF-8, at most so many.
std::string first_letters(std::string_view text, std::size_t count);
// The text as it is, or printable() where the descriptor is a terminal.
std::string printable_on(int descriptor, std::string_view text);

}  // namespace dtrain::cli
