# DTRAIN_DATE as manual pages, Debian's changelog and SOURCE_DATE_EPOCH write it.
function(dtrain_date variable format)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env LC_ALL=C date --utc --date=${DTRAIN_DATE} "+${format}"
                  OUTPUT_VARIABLE text OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  set(${variable} "${text}" PARENT_SCOPE)
endfunction()
dtrain_date(DTRAIN_DATE_OF_PAGES "%B %-d, %Y")
dtrain_date(DTRAIN_DATE_OF_MAIL "%a, %d %b %Y %T %z")
dtrain_date(DTRAIN_DATE_OF_RPM "%a %b %d %Y")
dtrain_date(DTRAIN_DATE_EPOCH "%s")
