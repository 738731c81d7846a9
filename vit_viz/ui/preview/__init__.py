"""How the page looks where only a link to it is shown: title, sentence, picture and icon, in the HTML itself."""
