// report_files.h - the page, style and script of the HTML report, made part of the program by the Makefile.
//
// Each is the file beside this one, byte for byte, followed by a NUL that its size does not count.
#ifndef ZB_REPORT_FILES_H
#define ZB_REPORT_FILES_H

#include <stddef.h>

extern const unsigned char zb_report_html[], zb_report_css[], zb_report_js[];
extern const size_t zb_report_html_size, zb_report_css_size, zb_report_js_size;

#endif
